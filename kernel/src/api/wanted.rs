//! For whose sake the running unit works: the deadline of a request that it serves.
//!
//! It holds for the code of one poll. Whatever else runs on the thread meanwhile, because that code waits with its stack
//! or runs other jobs on top of it, is not for the sake of that request.

use std::{future::poll_fn, pin::pin, time::Instant};

use crate::scheduler::workers::context;

/// Until when somebody waits for what the caller does; none if nobody has said so.
pub fn wanted_until() -> Option<Instant> {
    context::again().wanted_until()
}

/// Runs `future` for a caller that waits until `deadline`. An earlier one that holds already remains.
pub async fn wanted_by<F: Future>(deadline: Option<Instant>, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|cx| {
        let _restore = deadline.map(|deadline| {
            let here = context::again();
            let deadline = here
                .wanted_until()
                .map_or(deadline, |outer| outer.min(deadline));
            Restore(here.set_wanted_until(Some(deadline)))
        });
        future.as_mut().poll(cx)
    })
    .await
}

/// Sets what held before, when it is dropped.
struct Restore(Option<Instant>);

impl Drop for Restore {
    fn drop(&mut self) {
        // Read again: the stack may be on another thread by now.
        context::again().set_wanted_until(self.0);
    }
}
