//! Models of an answer: its sender against a receiver that comes again with another waker, or that goes.

use std::sync::{Arc, atomic::Ordering};

#[cfg(not(loom))]
use crate::models::loom_on_std as loom;
use loom::{cell::Cell, thread};

use crate::{
    api::answer::{AnswerPeek, AnswerState, Owns},
    sys::AtomicUsize as Watched,
};

/// The block without its types. Only the state orders the accesses of the wakers and the value.
struct Answering {
    state: AnswerState,
    /// What the words of the wakers 1 and 2 point to: the number of the waker.
    wakers: [Cell<usize>; 3],
    value: Cell<usize>,
    /// The number of the waker that the sender woke.
    woken: Watched,
    freed: Watched,
}

const NO_WAKER: usize = 0;
const VALUE: usize = 42;

/// The word of a waker.
fn word_of(waker: usize) -> *mut () {
    std::ptr::without_provenance_mut(64 * waker)
}

impl Answering {
    fn new() -> Arc<Answering> {
        let answer = Answering {
            state: AnswerState::new(word_of(1)),
            wakers: std::array::from_fn(|_| Cell::new(NO_WAKER)),
            value: Cell::new(0),
            woken: Watched::new(NO_WAKER),
            freed: Watched::new(0),
        };
        answer.wakers[1].set(1);
        Arc::new(answer)
    }

    /// The waker of `word`, which is the caller's, and gone afterwards.
    fn take_waker(&self, word: *mut ()) -> usize {
        let waker = word.addr() / 64;
        assert_eq!(self.wakers[waker].get(), waker);
        self.wakers[waker].set(NO_WAKER);
        waker
    }

    /// As `AnswerSender::end`. Whether the value came back.
    fn end(&self) -> bool {
        self.value.set(VALUE);
        match self.state.give() {
            Owns::Block => {
                self.free();
                true
            }
            Owns::Waker(word) => {
                let waker = self.take_waker(word);
                self.woken.store(waker, Ordering::Relaxed);
                false
            }
        }
    }

    /// As `AnswerReceiver::poll_receive` with this waker: the value, if it is there.
    fn poll(&self, waker: usize) -> Option<usize> {
        let is_given = match self.state.peek() {
            AnswerPeek::Given => true,
            AnswerPeek::Empty(word) if word == word_of(waker) => false,
            AnswerPeek::Empty(before) => {
                self.wakers[waker].set(waker);
                let is_replaced = self.state.replace(before, word_of(waker));
                let unused = match is_replaced {
                    true => before,
                    false => word_of(waker),
                };
                self.take_waker(unused);
                !is_replaced
            }
        };
        is_given.then(|| {
            let value = self.value.get();
            self.free();
            value
        })
    }

    /// As the drop of an `AnswerReceiver`.
    fn leave(&self) {
        match self.state.leave() {
            Owns::Block => {
                assert_eq!(self.value.get(), VALUE);
                self.free();
            }
            Owns::Waker(word) => {
                self.take_waker(word);
            }
        }
    }

    /// Drops what the block holds, so all other accesses of the value have to come before.
    fn free(&self) {
        self.value.set(0);
        assert_eq!(self.freed.fetch_add(1, Ordering::Relaxed), 0, "freed twice");
    }
}

impl Answering {
    /// After both ends: the block was freed, and each waker was woken or dropped.
    fn assert_over(&self) {
        assert_eq!(self.freed.load(Ordering::Relaxed), 1);
        for waker in &self.wakers {
            assert_eq!(waker.get(), NO_WAKER, "a waker is left");
        }
    }
}

/// A receiver that comes again with another waker gets the value there, or is woken by that waker.
#[test]
fn the_newest_waker_is_woken_or_the_value_is_there() {
    loom::model(|| {
        let answer = Answering::new();
        let sender = {
            let answer = answer.clone();
            thread::spawn(move || assert!(!answer.end()))
        };
        let polled = answer.poll(2);
        sender.join().unwrap();
        match polled {
            Some(value) => assert_eq!(value, VALUE),
            None => {
                assert_eq!(answer.woken.load(Ordering::Relaxed), 2);
                assert_eq!(answer.poll(2), Some(VALUE));
            }
        }
        answer.assert_over();
    });
}

/// A receiver that goes, and the sender: one of them frees the block, and the value comes back or is the receiver's.
#[test]
fn the_end_that_comes_last_frees_the_block() {
    for polls in [0, 1] {
        loom::model(move || {
            let answer = Answering::new();
            let sender = {
                let answer = answer.clone();
                thread::spawn(move || answer.end())
            };
            if polls == 0 || answer.poll(2).is_none() {
                answer.leave();
            }
            let _came_back = sender.join().unwrap();
            answer.assert_over();
        });
    }
}

/// The real block, for Miri and ThreadSanitizer: what it holds is dropped once, whichever side comes last.
#[cfg(not(loom))]
#[test]
fn a_block_is_freed_with_what_it_holds() {
    use std::task::{Context, Wake, Waker};

    use weald_sync::reason::{Kind, Reason};

    struct Wakes;

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {}
    }

    loom::model(|| {
        for polls in 0..3 {
            let (value, note, wakes) = (Arc::new(()), Arc::new(()), Arc::new(Wakes));
            let first = Some(Waker::from(wakes.clone()));
            let (sender, mut receiver) = crate::answer(note.clone(), first);
            let sending = {
                let value = value.clone();
                thread::spawn(move || sender.send(value).is_ok())
            };
            for _ in 0..polls {
                let waker = Waker::from(wakes.clone());
                let reason = Reason::unspecified(Kind::Oneshot);
                let polled = receiver.poll_receive(&mut Context::from_waker(&waker), reason);
                if polled.is_ready() {
                    break;
                }
            }
            drop(receiver);
            let _is_given = sending.join().unwrap();
            let left = [Arc::strong_count(&value), Arc::strong_count(&note)];
            assert_eq!((left, Arc::strong_count(&wakes)), ([1, 1], 1));
        }
    });
}
