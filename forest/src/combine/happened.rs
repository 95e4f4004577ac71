//! Each commit on its way from the journal to its readers (`show`), and what those are told who watch the forest and not
//! one tree.

use super::combiner::Combiner;
use super::made::Made;
use super::request::{Answer, Garbage};
use crate::journal::{Digest, Position};
use crate::state::forest::ForestState;
use crate::state::happenings::Happening;
use crate::version::Committed;

impl Combiner {
    /// Changes the forest, and notes what happened for those who watch it.
    #[inline]
    pub(super) fn show(
        &mut self,
        forest: &ForestState,
        (made, garbage): (Made, Garbage),
        (commit, digest, position): (Committed, Option<Digest>, Option<Position>),
    ) -> Answer {
        if matches!(made, Made::One(..) | Made::Many(_)) {
            return self.make_visible(forest, (made, garbage), (commit, digest, position));
        }
        let happening = made.happening();
        let answer = self.make_visible(forest, (made, garbage), (commit, digest, position));
        if let Some(happening) = happening {
            forest.happenings.add(commit, happening);
            self.has_happened = true;
        }
        answer
    }

    /// Wakes those who wait for what happened, once it is published.
    pub(super) fn tell_what_happened(&mut self, forest: &ForestState) {
        if std::mem::take(&mut self.has_happened) {
            let wakers = forest.happenings.take_wakers();
            self.publisher.deferred.wake_later(wakers.into_values());
        }
    }
}

impl Made {
    fn happening(&self) -> Option<Happening> {
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
