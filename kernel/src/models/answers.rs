//! Models of an answer: its sender against a receiver that comes again with another waker, or that goes.

use std::sync::{Arc, atomic::Ordering};

#[cfg(not(loom))]
use crate::models::loom_on_std as loom;
use loom::{cell::Cell, thread};

use crate::{
    api::answer::{AnswerPeek, AnswerState, Claimed},
    sys::AtomicUsize as Watched,
};

/// The block without its types. Only the state orders the accesses of the waker and the value.
struct Answering {
    state: AnswerState,
    /// The number of the waker.
    waker: Cell<usize>,
    value: Cell<usize>,
    /// The number of the waker that the sender woke.
    woken: Watched,
    freed: Watched,
}

const NO_WAKER: usize = 0;
const VALUE: usize = 42;

impl Answering {
    fn new() -> Arc<Answering> {
        Arc::new(Answering {
            state: AnswerState::new(),
            waker: Cell::new(1),
            value: Cell::new(0),
            woken: Watched::new(NO_WAKER),
            freed: Watched::new(0),
        })
    }

    /// As `AnswerSender::end`. Whether the value came back.
    fn end(&self) -> bool {
        self.value.set(VALUE);
        let waker = match self.state.claim() {
            Claimed::Block => {
                self.free();
                return true;
            }
            Claimed::NoWaker => NO_WAKER,
            Claimed::Waker => {
                let waker = self.waker.get();
                self.waker.set(NO_WAKER);
                waker
            }
        };
        if !self.state.give() {
            self.free();
            return true;
        }
        self.woken.store(waker, Ordering::Relaxed);
        false
    }

    /// As `AnswerReceiver::poll_receive` with this waker: the value, or whether the receiver has woken itself.
    fn poll(&self, waker: usize) -> Result<usize, bool> {
        match self.state.peek() {
            AnswerPeek::Given => {
                let value = self.value.get();
                self.free();
                Ok(value)
            }
            AnswerPeek::Soon => Err(true),
            AnswerPeek::Empty => {
                let mut is_seen = false;
                if self.state.begin_change() {
                    self.waker.set(waker);
                    is_seen = self.state.end_change();
                }
                Err(!is_seen)
            }
        }
    }

    /// As the drop of an `AnswerReceiver`.
    fn leave(&self) {
        if self.state.begin_change() {
            self.waker.set(NO_WAKER);
        }
        if self.state.leave() {
            assert_eq!(self.value.get(), VALUE);
            self.free();
        }
    }

    /// Drops what the block holds, so all other accesses have to come before.
    fn free(&self) {
        self.waker.set(NO_WAKER);
        self.value.set(0);
        assert_eq!(self.freed.fetch_add(1, Ordering::Relaxed), 0, "freed twice");
    }
}

/// A receiver that comes again with another waker gets the value there, wakes itself, or is woken by that waker.
#[test]
fn the_newest_waker_is_woken_or_the_receiver_comes_again() {
    loom::model(|| {
        let answer = Answering::new();
        let sender = {
            let answer = answer.clone();
            thread::spawn(move || assert!(!answer.end()))
        };
        let polled = answer.poll(2);
        sender.join().unwrap();
        match polled {
            Ok(value) => assert_eq!(value, VALUE),
            Err(has_woken_itself) => {
                let woken = answer.woken.load(Ordering::Relaxed);
                assert!(has_woken_itself || woken == 2, "woke {woken}");
                assert_eq!(answer.poll(2), Ok(VALUE));
            }
        }
        assert_eq!(answer.freed.load(Ordering::Relaxed), 1);
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
            if polls == 0 || answer.poll(2).is_err() {
                answer.leave();
            }
            let _came_back = sender.join().unwrap();
            assert_eq!(answer.freed.load(Ordering::Relaxed), 1);
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
