//! A pool thread that unwinds leaves nothing of its pool in its context.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::*;
use crate::{scheduler::workers::config::Config, timer::clock::ClockKind};

#[test]
fn the_context_of_a_thread_that_unwinds_names_nothing_of_its_pool() {
    let config = Config {
        workers: 1,
        ..Config::new()
    };
    let (shared, _handoffs) = Shared::new(config, ClockKind::Real).unwrap();
    let names = |cx: &Context| {
        let pinned = !cx.pinned_ptr().is_null();
        [cx.shared().is_some(), cx.outbox().is_some(), pinned]
    };
    let unwinds = || {
        let member = PoolThread::here(7, None);
        let ended = catch_unwind(AssertUnwindSafe(|| {
            context::with(|cx| {
                let _identity = Identity::assume(cx, &shared, &member);
                assert_eq!(names(cx), [true; 3]);
                resume_unwind(Box::new("a defect"));
            });
        }));
        assert_eq!(ended.unwrap_err().downcast_ref(), Some(&"a defect"));
        context::with(|cx| assert_eq!(names(cx), [false; 3]));
    };
    thread::scope(|scope| scope.spawn(unwinds).join()).unwrap();
}
