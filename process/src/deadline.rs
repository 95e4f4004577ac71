//! The deadline of the request that the running unit serves: calls that it makes meanwhile have it too.
//!
//! It is noted for the thread while the code that serves the request is polled, together with the unit that is polled:
//! what another unit does on this thread meanwhile, because the first one blocks, is not for the sake of that request.

use std::{cell::RefCell, future::poll_fn, mem, pin::pin, time::Instant};

use weald_kernel::Unit;

type Noted = Option<(Option<Unit>, Instant)>;

thread_local! {
    static NOTED: RefCell<Noted> = const { RefCell::new(None) };
}

/// The deadline of the request that the caller serves.
pub(crate) fn current() -> Option<Instant> {
    let noted = NOTED.try_with(|noted| noted.borrow().clone());
    let (unit, deadline) = noted.ok().flatten()?;
    (unit == Unit::current()).then_some(deadline)
}

/// Runs `future` for the sake of a request with this deadline. An earlier one that holds already remains.
pub(crate) async fn cover<F: Future>(deadline: Option<Instant>, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|cx| {
        let _noted = deadline.map(|deadline| {
            let deadline = current().map_or(deadline, |outer| outer.min(deadline));
            Restore(replace(Some((Unit::current(), deadline))))
        });
        future.as_mut().poll(cx)
    })
    .await
}

fn replace(noted: Noted) -> Noted {
    NOTED
        .try_with(|place| mem::replace(&mut *place.borrow_mut(), noted))
        .ok()
        .flatten()
}

/// Notes what was noted before, when it is dropped.
struct Restore(Noted);

impl Drop for Restore {
    fn drop(&mut self) {
        let _ours = replace(self.0.take());
    }
}
