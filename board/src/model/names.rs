//! Names that are protected by a passphrase: somebody who writes under such a name must know it.
//!
//! - A tree of the forest's own, `names`, has a node for each. It does not have the name, but a hash of it.
//! - The hash of the passphrase is erasable. So when it is changed, the old one is gone from every version.
//! - Two names are one name if they differ only in case, in space, in invisible characters, or in how Unicode writes
//!   the same letter.

use unicode_normalization::UnicodeNormalization;
use weald::forest::{Attributes, CommitError, Edit, NameError, Node, NodeId, Query, Snapshot};
use weald::forest::{Sortable, Terms, TreeHandle, Version};

use super::author::hash;
use super::boards::Boards;
use super::draft::{ANONYMOUS, Field, Invalid, MAX_AUTHOR, is_unseen, one_line};
use super::error::BoardError;
use super::passphrase::{Hashed, check_passphrase};

const TREE: &str = "names";

/// The names of the attributes.
mod of_name {
    pub(super) const KEY: &str = "key";
    pub(super) const HASH: &str = "hash";
    /// The first node of the owner, in those that came by a change of the passphrase.
    pub(super) const FIRST: &str = "first";
}

/// A name as it is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NameKey([u8; 16]);

/// The node of a protected name. A change of the passphrase makes another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Protection {
    pub(super) node: NodeId,
    /// The first node of the same owner.
    pub(super) first: NodeId,
}

impl Protection {
    pub(super) fn of(node: NodeId, first: Option<&[u8]>) -> Self {
        let first = first.and_then(noted_node).unwrap_or(node);
        Self { node, first }
    }
}

impl NameKey {
    /// The key of a name; `None` for no name, and for the one that stands for no name.
    pub fn of(name: &str) -> Option<Self> {
        // Twice, because a small letter may be written in one way only where a large one is not.
        let seen = name.nfkc().filter(|c| !is_unseen(*c)).collect::<String>();
        let seen = one_line(&seen).to_lowercase();
        let seen = seen.nfkc().collect::<String>();
        let is_nobody = seen.is_empty() || seen == ANONYMOUS.to_lowercase();
        (!is_nobody).then(|| Self(hash("name", &[seen.as_bytes()])))
    }
}

impl Boards {
    /// Whether any name is protected, or was.
    pub(crate) fn has_names(&self) -> bool {
        self.0.store.trees().get(TREE).is_ok()
    }

    /// The key of a name, if it is protected.
    pub(crate) fn protected(&self, name: &str) -> Option<NameKey> {
        let key = self.has_names().then(|| NameKey::of(name)).flatten();
        key.filter(|key| self.is_protected(*key))
    }

    /// Whether a name is protected.
    pub fn is_protected(&self, key: NameKey) -> bool {
        self.hash_of(key).is_ok()
    }

    /// Protects a name: from now on only those who know the passphrase write under it.
    ///
    /// # Errors
    /// [`BoardError::Invalid`]; [`BoardError::NameTaken`], if it is protected already; [`BoardError::Storage`].
    pub async fn protect(&self, name: &str, passphrase: &str) -> Result<(), BoardError> {
        let key = check_name(name)?;
        check_passphrase(passphrase)?;
        if self.is_protected(key) {
            return Err(BoardError::NameTaken);
        }
        let hash = self.0.turns.hash(passphrase).await?;
        let tree = self.names().await?;
        let update = tree.update_with(Terms::new().bytes(b"protect"), |edit| {
            if found(edit, key)?.is_some() {
                return Err(BoardError::NameTaken);
            }
            add(edit, (key, None), &hash)
        });
        self.noted_of(update.await)?;
        self.note_room();
        Ok(())
    }

    /// Whether a passphrase is that of a name.
    ///
    /// # Errors
    /// [`BoardError::NoName`], if the name is not protected; [`BoardError::WrongPassphrase`]; [`BoardError::Crowded`],
    /// if too many passphrases are being looked at.
    pub async fn prove(&self, key: NameKey, passphrase: &str) -> Result<(), BoardError> {
        let hash = self.hash_of(key)?;
        match self.fits(&hash, passphrase).await? {
            true => Ok(()),
            false => Err(BoardError::WrongPassphrase),
        }
    }

    /// Gives a name another passphrase. The one before is erased.
    ///
    /// # Errors
    /// As [`prove`](Self::prove) about the old passphrase, and as [`protect`](Self::protect) about the new one.
    pub async fn change_passphrase(
        &self,
        name: &str,
        old: &str,
        new: &str,
    ) -> Result<(), BoardError> {
        let key = check_name(name)?;
        check_passphrase(new).map_err(Invalid::of_new_passphrase)?;
        self.prove(key, old).await?;
        let hash = self.0.turns.hash(new).await?;
        let put = |edit: &mut Edit, first| add(edit, (key, Some(first)), &hash);
        self.replace(key, b"change", put).await?;
        Ok(())
    }

    /// Gives up a name, which anybody may use then.
    ///
    /// # Errors
    /// As [`prove`](Self::prove).
    pub async fn release(&self, name: &str, passphrase: &str) -> Result<(), BoardError> {
        let key = check_name(name)?;
        self.prove(key, passphrase).await?;
        self.free(key).await?;
        Ok(())
    }

    /// Gives up a name without its passphrase, as a moderator can. Returns the version that no longer has it.
    ///
    /// # Errors
    /// [`BoardError::NoName`], [`BoardError::Storage`].
    pub async fn free(&self, key: NameKey) -> Result<Version, BoardError> {
        self.replace(key, b"release", |_, _| Ok(())).await
    }

    fn hash_of(&self, key: NameKey) -> Result<Hashed, BoardError> {
        let trees = self.0.store.trees();
        let snapshot = trees.get(TREE).map_err(|_| BoardError::NoName)?.snapshot();
        let node = find(&snapshot, key).ok_or(BoardError::NoName)?;
        let value = trees.value(node, of_name::HASH);
        let text = value.and_then(|value| String::from_utf8(value.bytes()?.to_vec()).ok());
        let hash = text.and_then(|text| text.parse().ok());
        hash.ok_or(BoardError::NoName)
    }

    /// Puts what `put` adds in the place of a name's node, and then erases the old hash from all versions. `put` gets
    /// the first node of the owner.
    async fn replace(
        &self,
        key: NameKey,
        what: &[u8],
        mut put: impl FnMut(&mut Edit, NodeId) -> Result<(), BoardError>,
    ) -> Result<Version, BoardError> {
        let tree = self.names().await?;
        let update = tree.update_with(Terms::new().bytes(what), |edit| {
            let old = found(edit, key)?.ok_or(BoardError::NoName)?;
            let first = Protection::of(old, edit.attribute(old, of_name::FIRST)?).first;
            edit.delete(old)?;
            put(edit, first)?;
            Ok::<_, BoardError>(old)
        });
        let (old, made) = self.noted_of(update.await)?;
        self.erase_hash(old).await?;
        Ok(made.version)
    }

    /// The node of a name, if it is protected.
    pub(super) fn protection(&self, key: NameKey) -> Option<Protection> {
        let snapshot = self.0.store.trees().get(TREE).ok()?.snapshot();
        let node = find(&snapshot, key)?;
        Some(Protection::of(node.id(), node.get(of_name::FIRST)))
    }

    /// Erases the hash of a passphrase from all versions, unless that was done before. Returns a version without it.
    pub(super) async fn erase_hash(&self, of: NodeId) -> Result<Version, BoardError> {
        let tree = self.names().await?;
        match self.noted(tree.erase(of, of_name::HASH).await) {
            Ok(made) => Ok(made.version),
            Err(CommitError::NothingToErase { .. }) => Ok(tree.view().version()),
            Err(error) => Err(error.into()),
        }
    }

    /// The tree of names, which the first protected name makes.
    async fn names(&self) -> Result<TreeHandle, BoardError> {
        let trees = self.0.store.trees();
        let tree = match trees.get(TREE) {
            Ok(tree) => tree,
            Err(_) => match trees.create(TREE).await {
                Ok(tree) => tree,
                Err(CommitError::Name(NameError::Taken(_))) => {
                    trees.get(TREE).map_err(|_| BoardError::Crowded)?
                }
                Err(error) => return Err(error.into()),
            },
        };
        let has_index = tree.view().indexes().any(|index| index == of_name::KEY);
        if !has_index {
            tree.add_index(of_name::KEY).await?;
        }
        Ok(tree)
    }
}

/// The node that the log or the tree of names has noted.
pub(super) fn noted_node(bytes: &[u8]) -> Option<NodeId> {
    NodeId::new(u64::from_sortable(bytes).ok()?)
}

/// Adds the node of a name, whose owner has had a first one already, or not.
fn add(
    edit: &mut Edit,
    (key, first): (NameKey, Option<NodeId>),
    hash: &Hashed,
) -> Result<(), BoardError> {
    let mut node = Attributes::new().with(of_name::KEY, key.0);
    if let Some(first) = first {
        node = node.with(of_name::FIRST, first.get().to_sortable());
    }
    let id = edit.append(edit.root(), node)?;
    Ok(edit.put_erasable(id, of_name::HASH, hash.as_str())?)
}

fn query(key: NameKey) -> Query {
    Query::equal(of_name::KEY, key.0).limit(1)
}

fn find(names: &Snapshot, key: NameKey) -> Option<Node<'_>> {
    let id = names.find(&query(key)).next()?.id();
    names.tree().node(id)
}

/// The node of a name, which the edit relies on.
fn found(edit: &Edit, key: NameKey) -> Result<Option<NodeId>, BoardError> {
    Ok(edit.find(&query(key))?.first().copied())
}

fn check_name(name: &str) -> Result<NameKey, Invalid> {
    let mut invalid = Invalid::default();
    let key = NameKey::of(name);
    if key.is_none() {
        let sentence = "Which name? This one stands for nobody.";
        invalid.note(Field::Author, sentence.to_owned());
    }
    invalid.expect_line(Field::Author, &one_line(name), MAX_AUTHOR);
    match key {
        Some(key) if invalid.0.is_empty() => Ok(key),
        _ => Err(invalid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_unicode_writes_in_two_ways_are_one() {
        for (one, other) in [
            ("Jos\u{e9}", "Jose\u{301}"),
            ("Grace", "\u{ff27}race"),
            ("Ada", "Ada\u{2800}"),
        ] {
            assert_eq!(NameKey::of(one), NameKey::of(other), "{other}");
        }
    }

    #[test]
    fn names_that_look_alike_are_one() {
        let ada = NameKey::of("Ada King");
        for same in ["ada king", " ADA  King ", "A\u{200b}da\u{feff} Ki\u{ad}ng"] {
            assert_eq!(NameKey::of(same), ada, "{same:?}");
        }
        assert_ne!(NameKey::of("AdaKing"), ada);
        for nobody in ["", " \u{200b} ", "anonymous", "ANONYMOUS "] {
            assert_eq!(NameKey::of(nobody), None, "{nobody:?}");
        }
    }
}
