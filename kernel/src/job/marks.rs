//! Marks: places among received messages that survive from one receive to the next.
//!
//! A mark stands behind a node, and a chain that has such marks keeps them in a table: when the node is removed, the
//! mark moves to the node before it. So with marks each removal of a message costs one lookup in the table; without
//! marks it costs nothing.
//!
//! Invariants: every place is a node of the chain; a mark that is in no table stands before the oldest message. Used by
//! [`crate::job::chain`] only; users hold a [`Mark`].

use std::{fmt, ops::Range, ptr::NonNull, sync::Arc};

use crate::job::state::Link;

/// A place among the messages of a mailbox, between two of them, which survives from one receive to the next. A receive
/// with this mark no longer looks at the messages before it.
///
/// [`Mark::oldest`] stands before all messages, and the `mark` of a mailbox behind all that have come. A receive with a
/// mark moves the mark behind the messages that the receive refused. Other receives never move a mark past a message.
/// In a mailbox to which it does not belong, a mark stands before the oldest message.
///
/// A mark has 8 bytes, and an allocation of 16 more once it stands behind a message.
///
/// After the receive markers of Erlang, which its compiler places where a reference is made.
#[derive(Default)]
pub struct Mark(Option<Arc<()>>);

impl Mark {
    /// The place before all messages.
    pub const fn oldest() -> Mark {
        Mark(None)
    }

    /// The name of the mark in a table. No other mark has it, as long as the table or this mark lives.
    fn identity(&mut self) -> Arc<()> {
        // If another table knew the same name, neither table would ever forget it.
        if self
            .0
            .as_ref()
            .is_none_or(|name| Arc::strong_count(name) > 1)
        {
            self.0 = Some(Arc::new(()));
        }
        self.0.clone().expect("it was just set")
    }
}

impl fmt::Debug for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mark")
    }
}

/// The marks of one chain, and what such a chain counts.
pub(crate) struct MarkTable {
    /// The last node of the chain.
    pub(crate) last: *mut Link,
    /// How many nodes the chain has.
    pub(crate) length: usize,
    pub(crate) noted: NotedLength,
    places: Vec<Place>,
    /// With this many places, the table forgets the marks that were dropped.
    full: usize,
}

/// The least length of a queue that is noted, whatever `mailbox_mark`: shorter queues cost nothing.
pub(crate) const LEAST_NOTED: usize = 1 << 10;

/// What the receiver of a chain with marks has noted of its length, so that a receive that waits behind many messages
/// need not note the same again.
pub(crate) struct NotedLength {
    /// With so many messages there is nothing new to note.
    lengths: Range<usize>,
}

impl NotedLength {
    pub(crate) const NOTHING: NotedLength = NotedLength { lengths: 0..0 };

    /// So many messages were noted.
    pub(crate) fn new(length: usize, mailbox_mark: usize) -> NotedLength {
        let (least, end) = (length - length / PART, length + length / PART + 1);
        let lengths = match length >= mailbox_mark {
            true => least.max(mailbox_mark)..end,
            false => least..end.min(mailbox_mark),
        };
        NotedLength { lengths }
    }

    pub(crate) fn covers(&self, length: usize) -> bool {
        self.lengths.contains(&length)
    }
}

/// A length is noted again when it has changed by one part in so many, or has come to the other side of `mailbox_mark`.
const PART: usize = 8;

struct Place {
    mark: Arc<()>,
    /// The node behind which it stands.
    node: NonNull<Link>,
}

/// How many places a table has before it looks for dropped marks.
const FEW: usize = 4;

impl MarkTable {
    pub(crate) fn new(last: *mut Link, length: usize) -> MarkTable {
        MarkTable {
            last,
            length,
            noted: NotedLength::NOTHING,
            places: Vec::new(),
            full: FEW,
        }
    }

    /// `count` nodes were appended, the last of which is `newest`.
    pub(crate) fn append(&mut self, newest: *mut Link, count: usize) {
        self.last = newest;
        self.length += count;
        // So many at once are noted as messages that the receiver may want.
        if count >= LEAST_NOTED {
            self.noted = NotedLength::NOTHING;
        }
    }

    /// The node behind which `mark` stands; none if it stands before all.
    pub(crate) fn find(&self, mark: &Mark) -> Option<NonNull<Link>> {
        let name = mark.0.as_ref()?;
        let place = self
            .places
            .iter()
            .find(|place| Arc::ptr_eq(&place.mark, name));
        place.map(|place| place.node)
    }

    /// Puts `mark` behind `node`, which the chain owns.
    pub(crate) fn set(&mut self, mark: &mut Mark, node: NonNull<Link>) {
        if let Some(name) = &mark.0
            && let Some(place) = self.places.iter_mut().find(|p| Arc::ptr_eq(&p.mark, name))
        {
            place.node = node;
            return;
        }
        // A caller that makes a mark for each request drops it with the answer: its place and its name serve the next
        // one.
        let dropped = |place: &&mut Place| Arc::strong_count(&place.mark) == 1;
        if let Some(place) = self.places.iter_mut().rev().take(FEW).find(dropped) {
            mark.0 = Some(Arc::clone(&place.mark));
            place.node = node;
            return;
        }
        if self.places.len() >= self.full {
            self.places
                .retain(|place| Arc::strong_count(&place.mark) > 1);
            self.full = FEW.max(2 * self.places.len());
        }
        let mark = mark.identity();
        self.places.push(Place { mark, node });
    }

    /// `node` leaves the chain, and `before` is the node before it, if it was not the oldest.
    pub(crate) fn remove(&mut self, node: NonNull<Link>, before: Option<NonNull<Link>>) {
        match before {
            Some(before) => {
                let behind = self.places.iter_mut().filter(|place| place.node == node);
                behind.for_each(|place| place.node = before);
            }
            None => self.places.retain(|place| place.node != node),
        }
    }

    #[cfg(test)]
    pub(crate) fn places(&self) -> usize {
        self.places.len()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_noted_again_when_it_has_changed_by_an_eighth_or_reaches_the_mark() {
        let covered =
            |noted: &NotedLength| (0..10_000).filter(|length| noted.covers(*length)).count();
        let (few, many) = (
            NotedLength::new(1_600, 2_000),
            NotedLength::new(4_000, 2_000),
        );
        assert!(few.covers(1_400) && few.covers(1_800));
        assert!(many.covers(3_500) && many.covers(4_500));
        assert_eq!((covered(&few), covered(&many)), (401, 1_001));
        assert_eq!(NotedLength::new(1_900, 2_000).lengths, 1_663..2_000);
        assert_eq!(NotedLength::new(2_000, 2_000).lengths, 2_000..2_251);
        assert!(!NotedLength::NOTHING.covers(0));
    }
}
