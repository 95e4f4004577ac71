//! The deadline of the request that the running unit serves.
//!
//! It holds for the code of one poll. While that code waits with its stack, or runs other jobs on top of it, the other
//! code on the thread does not work on behalf of that request.

use std::{future::poll_fn, pin::pin, time::Instant};

use crate::scheduler::workers::context;

/// Until when somebody waits for what the caller does; none if nobody has said so.
pub fn wanted_until() -> Option<Instant> {
    context::again().wanted_until()
}

/// Runs `future` for a caller that waits until `deadline`. An earlier deadline that holds already remains. Cancel-safe
/// if `future` is: each poll sets the deadline anew, and takes it back at its end.
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
