//! What happened to the forest as a whole, for those that watch it: trees that come, go or are renamed, tags, and
//! erasures. Watches of one tree are told by its history.

use super::combiner::Combiner;
use super::new_versions::Made;
use crate::state::forest::ForestState;
use crate::state::happenings::Happening;

impl Combiner {
    /// Wakes the watches of the forest, once the change is published.
    pub(super) fn tell_what_happened(&mut self, forest: &ForestState) {
        if std::mem::take(&mut self.has_happened) {
            let wakers = forest.happenings.take_wakers();
            self.publisher.deferred.wake_later(wakers.into_values());
        }
    }
}

impl Made {
    /// What the watches of the forest are told about a change, if anything.
    pub(super) fn happening(&self) -> Option<Happening> {
        Some(match self {
            Self::One(..) | Self::Many(_) => return None,
            Self::Create(name, state, _) => Happening::Created {
                tree: state.number,
                name: name.to_string(),
            },
            Self::Delete(name, state) => Happening::Deleted {
                tree: state.number,
                name: name.to_string(),
            },
            Self::Rename(from, to, state) => Happening::Renamed {
                tree: state.number,
                from: from.to_string(),
                to: to.to_string(),
            },
            Self::Tag(state, tag, tagged) => Happening::Tagged {
                tree: state.number,
                tag: tag.to_string(),
                version: tagged.given,
            },
            Self::Untag(state, tag) => Happening::Untagged {
                tree: state.number,
                tag: tag.to_string(),
            },
            Self::Erase(erasure) => Happening::Erased {
                tree: erasure.place.0,
                node: erasure.place.1,
                name: erasure.place.2.to_string(),
            },
        })
    }
}
