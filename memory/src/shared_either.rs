//! Nothing, or a counted pointer to a value of one of two types, in one word.
//!
//! **Safety.** The word is zero, or a pointer of a [`Shared`] with its share of the counter, whose lowest bit says
//! which type it points to: blocks are aligned to a word, so that bit of a pointer is zero.

#![allow(unsafe_code)]

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::shared::{Shared, count_down_at, count_up_at, is_alone_at};

/// Nothing, or a [`Shared`] of `A` or of `B`.
///
/// ```
/// use weald_memory::{Either, Shared, SharedEither};
///
/// let one: SharedEither<u64, String> = SharedEither::second(Shared::new("text".into()));
/// let two = one.clone();
/// assert!(matches!(two.get(), Some(Either::Second(text)) if text == "text") && two.is(&one));
/// assert_eq!(size_of::<SharedEither<u64, String>>(), 8);
/// ```
pub struct SharedEither<A, B>(Option<NonNull<()>>, PhantomData<(Shared<A>, Shared<B>)>);

// SAFETY: it is one of two pointers, each of which may be sent.
unsafe impl<A: Send + Sync, B: Send + Sync> Send for SharedEither<A, B> {}
// SAFETY: it is one of two pointers, each of which may be shared.
unsafe impl<A: Send + Sync, B: Send + Sync> Sync for SharedEither<A, B> {}

/// What a [`SharedEither`] points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Either<X, Y> {
    /// The first type.
    First(X),
    /// The second type.
    Second(Y),
}

const SECOND: usize = 1;

impl<A, B> SharedEither<A, B> {
    /// Nothing.
    pub const EMPTY: Self = Self(None, PhantomData);

    /// A pointer to the first type.
    #[inline]
    pub fn first(shared: Shared<A>) -> Self {
        Self(Some(shared.into_raw()), PhantomData)
    }

    /// A pointer to the second type.
    #[inline]
    pub fn second(shared: Shared<B>) -> Self {
        let tagged = shared.into_raw().map_addr(|address| address | SECOND);
        Self(Some(tagged), PhantomData)
    }

    /// Whether it is nothing.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether both are nothing, or point to one value.
    #[inline]
    pub fn is(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    /// What it points to.
    #[inline]
    pub fn get(&self) -> Option<Either<&A, &B>> {
        Some(match self.raw()? {
            // SAFETY: the word keeps the value alive, and is borrowed for as long as the reference lives.
            Either::First(raw) => Either::First(unsafe { Shared::value_at(raw) }),
            // SAFETY: as above.
            Either::Second(raw) => Either::Second(unsafe { Shared::value_at(raw) }),
        })
    }

    /// The pointer, which leaves nothing behind.
    #[inline]
    pub fn take(&mut self) -> Option<Either<Shared<A>, Shared<B>>> {
        let raw = self.raw()?;
        self.0 = None;
        Some(match raw {
            // SAFETY: the word was this pointer, and is nothing from now on.
            Either::First(raw) => Either::First(unsafe { Shared::from_raw(raw) }),
            // SAFETY: as above.
            Either::Second(raw) => Either::Second(unsafe { Shared::from_raw(raw) }),
        })
    }

    /// The pointer without its mark, whichever type it points to.
    #[inline(always)]
    fn unmarked(&self) -> Option<NonNull<()>> {
        let pointer = self.0?.as_ptr().map_addr(|address| address & !SECOND);
        // SAFETY: a block is not at zero, so its address is not either; the mark alone is never stored.
        Some(unsafe { NonNull::new_unchecked(pointer) })
    }

    /// The last share of the counter is given up.
    #[cold]
    #[inline(never)]
    fn end(&mut self) {
        match self.raw() {
            // SAFETY: it was the last share of a pointer to this type.
            Some(Either::First(raw)) => unsafe { Shared::<A>::end(raw) },
            // SAFETY: as above.
            Some(Either::Second(raw)) => unsafe { Shared::<B>::end(raw) },
            None => {}
        }
    }

    /// The pointer without its mark, by the type that it points to.
    #[inline]
    fn raw(&self) -> Option<Either<NonNull<()>, NonNull<()>>> {
        let (word, unmarked) = (self.0?, self.unmarked()?);
        Some(match word.addr().get() & SECOND {
            0 => Either::First(unmarked),
            _ => Either::Second(unmarked),
        })
    }
}

impl<A: Clone, B: Clone> SharedEither<A, B> {
    /// What it points to, to be changed. If there are other pointers to it, this one gets a clone first.
    #[inline]
    pub fn own(&mut self) -> Option<Either<&mut A, &mut B>> {
        // SAFETY: the word keeps the block alive.
        let raw = match unsafe { is_alone_at(self.unmarked()?) } {
            true => self.raw()?,
            false => self.copy()?,
        };
        Some(match raw {
            // SAFETY: the word is the only pointer to the value, and is borrowed for as long as the reference lives.
            Either::First(raw) => Either::First(unsafe { Shared::value_at_mut(raw) }),
            // SAFETY: as above.
            Either::Second(raw) => Either::Second(unsafe { Shared::value_at_mut(raw) }),
        })
    }

    /// Replaces the value by a clone with one pointer, and returns that.
    #[inline(never)]
    fn copy(&mut self) -> Option<Either<NonNull<()>, NonNull<()>>> {
        *self = match self.get()? {
            Either::First(value) => Self::first(Shared::new(value.clone())),
            Either::Second(value) => Self::second(Shared::new(value.clone())),
        };
        self.raw()
    }
}

impl<A, B> Clone for SharedEither<A, B> {
    #[inline(always)]
    fn clone(&self) -> Self {
        if let Some(raw) = self.unmarked() {
            // SAFETY: the word keeps the block alive.
            unsafe { count_up_at(raw, 1) };
        }
        Self(self.0, PhantomData)
    }
}

impl<A, B> Drop for SharedEither<A, B> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(raw) = self.unmarked() {
            // SAFETY: the word gives up its share of the counter, and is not used after `end`.
            if unsafe { count_down_at(raw, 1) } {
                self.end();
            }
        }
    }
}

impl<A: fmt::Debug, B: fmt::Debug> fmt::Debug for SharedEither<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Word = SharedEither<u64, String>;

    fn first(number: u64) -> Word {
        Word::first(Shared::new(number))
    }

    fn second(text: &str) -> Word {
        Word::second(Shared::new(text.to_owned()))
    }

    #[test]
    fn it_is_what_was_put_in() {
        assert!(Word::EMPTY.is_empty() && Word::EMPTY.get().is_none());
        assert_eq!(first(7).get(), Some(Either::First(&7)));
        assert_eq!(second("b").get(), Some(Either::Second(&"b".to_owned())));
        assert!(matches!(second("c").take(), Some(Either::Second(text)) if *text == "c"));
        assert_eq!(size_of::<Word>(), size_of::<usize>());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]
        #[test]
        fn a_change_is_seen_by_nobody_else(steps in prop::collection::vec((0..4_u8, 0..8_usize, 0..8_usize), 0..60)) {
            let mut words: [(Word, Option<Either<u64, String>>); 8] =
                std::array::from_fn(|_| (Word::EMPTY, None));
            for (number, (step, at, from)) in (0..).zip(steps) {
                match step {
                    0 => words[at] = (first(number), Some(Either::First(number))),
                    1 => words[at] = (second("t"), Some(Either::Second("t".to_owned()))),
                    2 => words[at] = words[from].clone(),
                    _ => match (words[at].0.own(), &mut words[at].1) {
                        (Some(Either::First(a)), Some(Either::First(b))) => (*a, *b) = (*a + 1, *b + 1),
                        (Some(Either::Second(a)), Some(Either::Second(b))) => {
                            a.push('x');
                            b.push('x');
                        }
                        (None, None) => {}
                        _ => prop_assert!(false, "of another type"),
                    },
                }
                for (word, model) in &words {
                    let seen = word.get().map(|seen| match seen {
                        Either::First(a) => Either::First(*a),
                        Either::Second(b) => Either::Second(b.clone()),
                    });
                    prop_assert_eq!(&seen, model);
                }
            }
        }
    }
}
