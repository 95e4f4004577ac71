//! Wakers for tests: one that panics, with a payload whose destructor panics too, and one that tells.

use std::panic::panic_any;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Wake, Waker};

/// A payload whose destructor panics, with such a payload too.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic_any(Self)
    }
}

struct Hostile;

impl Wake for Hostile {
    fn wake(self: Arc<Self>) {
        panic_any(Bomb)
    }
}

struct Told(Sender<()>);

impl Wake for Told {
    fn wake(self: Arc<Self>) {
        self.0.send(()).unwrap();
    }
}

/// A waker that panics.
pub(crate) fn hostile() -> Waker {
    Waker::from(Arc::new(Hostile))
}

/// A waker, and what it sends when it is called.
pub(crate) fn sound() -> (Waker, Receiver<()>) {
    let (told, is_told) = channel();
    (Waker::from(Arc::new(Told(told))), is_told)
}
