//! How a moderator frees a protected name.
//!
//! - The entry of the log names the node whose hash is to be erased, and the first node of the owner.
//! - What comes again completes what was interrupted. If the owner has changed the passphrase meanwhile, the name has
//!   another node, which the entry then names. If somebody else has the name by now, it stays theirs.

use weald::forest::{NodeId, Sortable, Version};

use super::audit::{By, Measure, check, of_entry};
use super::boards::Boards;
use super::draft::one_line;
use super::error::BoardError;
use super::names::{NameKey, Protection};

impl Boards {
    /// Frees a protected name without its passphrase, after that is in the log.
    ///
    /// # Errors
    /// [`BoardError::Invalid`], if there is no reason; [`BoardError::TokenUsed`]; else those of [`free`](Self::free).
    /// If the log takes no entry, nothing is done.
    pub async fn free_name(&self, name: &str, by: By<'_>) -> Result<(), BoardError> {
        let why = check(by.why)?;
        let name = one_line(name);
        let key = NameKey::of(&name);
        let texts = [(of_entry::NAME, name), (of_entry::WHY, why)];
        let turn = self.turn((by, Measure::Free), &[], &texts).await?;
        if turn.done.is_some() {
            return Ok(());
        }
        let found = key.and_then(|key| Some((key, self.protection(key)?)));
        let (noted, outcome) = match (turn.entry, found) {
            (Some(entry), found) => {
                let freed = self.free_again(entry, turn.protection, found).await;
                (entry, freed)
            }
            (None, None) => return Err(BoardError::NoName),
            (None, Some((key, now))) => {
                let entry = turn
                    .entry()
                    .with(of_entry::NODE, now.node.get().to_sortable())
                    .with(of_entry::FIRST, now.first.get().to_sortable());
                let noted = self.note(&turn, entry, texts).await?;
                (noted, self.free(key).await)
            }
        };
        self.conclude(noted, outcome).await?;
        Ok(())
    }

    /// Frees a name that an entry of the log is about, unless it is another owner's by now. The hash that the entry
    /// names is erased in any case.
    async fn free_again(
        &self,
        entry: NodeId,
        before: Option<Protection>,
        found: Option<(NameKey, Protection)>,
    ) -> Result<Version, BoardError> {
        let now = found.map(|(_, now)| now.node);
        let erased = match before {
            Some(before) if now != Some(before.node) => Some(self.erase_hash(before.node).await?),
            _ => None,
        };
        let is_theirs =
            |now: Protection| before.is_none_or(|it| it.node == now.node || it.first == now.first);
        match (found, erased) {
            (Some((key, now)), _) if is_theirs(now) => {
                if before.is_none_or(|before| before.node != now.node) {
                    self.note_protection(entry, now).await?;
                }
                self.free(key).await
            }
            (_, Some(version)) => Ok(version),
            (_, None) => Err(BoardError::NoName),
        }
    }

    /// Puts the node that a name has now into an entry, so that its hash is erased whatever happens next.
    async fn note_protection(&self, entry: NodeId, now: Protection) -> Result<(), BoardError> {
        let mut edit = self.log().await?.edit();
        edit.put_attribute(entry, of_entry::NODE, now.node.get().to_sortable())?;
        edit.put_attribute(entry, of_entry::FIRST, now.first.get().to_sortable())?;
        self.noted(edit.commit().bytes(b"note").await)?;
        Ok(())
    }
}
