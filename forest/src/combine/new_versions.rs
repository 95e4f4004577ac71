//! What a commit makes: the new versions, as they will be visible.

use std::sync::Arc;

use crate::content::erasable::{Blob, BlobId, Place, Referred};
use crate::content::shelves::find;
use crate::journal::Erasure;
use crate::state::history::Tagged;
use crate::state::root::RootRef;
use crate::state::tree::TreeRef;

/// A commit that has a number and waits to be applied.
pub(crate) enum Made {
    One(TreeRef, NewRoot),
    Many(Vec<(TreeRef, NewRoot)>),
    Create(Arc<str>, TreeRef, Vec<Referred>),
    Delete(Arc<str>, TreeRef),
    Rename(Arc<str>, Arc<str>, TreeRef),
    Erase(Box<Erasure>),
    Tag(TreeRef, Arc<str>, Box<Tagged>),
    Untag(TreeRef, Arc<str>),
}

impl Made {
    /// The references that it brings to an attribute.
    pub(crate) fn references_at(&self, place: &Place) -> Vec<BlobId> {
        let (tree, node, name) = place;
        let of = |state: &TreeRef, references: &[Referred]| -> Vec<BlobId> {
            // They are in the order of their attributes.
            let found = find(references, (*node, name));
            found
                .filter(|_| state.number == *tree)
                .into_iter()
                .collect()
        };
        match self {
            Self::One(state, new) => of(state, new.references()),
            Self::Many(all) => {
                let all = all.iter();
                all.flat_map(|(state, new)| of(state, new.references()))
                    .collect()
            }
            Self::Create(_, state, references) => of(state, references),
            _ => Vec::new(),
        }
    }
}

/// A version, and what comes with it.
pub(crate) struct NewRoot {
    pub(crate) root: RootRef,
    pub(crate) erasable: Option<Box<ErasableParts>>,
    /// The greatest id of a node that it brings; 0, if it brings none.
    pub(crate) last_id: u64,
}

/// What few versions bring beside nodes.
pub(crate) struct ErasableParts {
    pub(crate) blobs: Vec<Blob>,
    pub(crate) references: Vec<Referred>,
}

impl ErasableParts {
    #[inline]
    pub(crate) fn of(blobs: Vec<Blob>, references: Vec<Referred>) -> Option<Box<Self>> {
        let is_some = !blobs.is_empty() || !references.is_empty();
        is_some.then(|| Box::new(Self { blobs, references }))
    }
}

impl NewRoot {
    fn references(&self) -> &[Referred] {
        let erasable = self.erasable.as_ref();
        erasable.map_or(&[], |erasable| &erasable.references)
    }
}
