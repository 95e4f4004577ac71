//! `blocking` and `offload` carry the caller's `tracing` span to the blocking thread. A program of its own, because it
//! has a subscriber of its own.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{cell::RefCell, sync::Mutex};

use tracing::{
    Event, Metadata, Subscriber,
    span::{Attributes, Id, Record},
};
use tracing_core::span::Current;
use weald_kernel::{Runtime, blocking, offload};

/// The spans that there are.
static SPANS: Mutex<Vec<(u64, &'static Metadata<'static>)>> = Mutex::new(Vec::new());

thread_local! {
    static ENTERED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Numbers spans by the length of their name.
struct Spans;

impl Subscriber for Spans {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = span.metadata().name().len() as u64;
        SPANS.lock().unwrap().push((id, span.metadata()));
        Id::from_u64(id)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, span: &Id) {
        ENTERED.with_borrow_mut(|entered| entered.push(span.into_u64()));
    }

    fn exit(&self, _: &Id) {
        ENTERED.with_borrow_mut(|entered| entered.pop());
    }

    fn current_span(&self) -> Current {
        let entered = ENTERED.with_borrow(|entered| entered.last().copied());
        let spans = SPANS.lock().unwrap();
        let current = spans.iter().find(|(id, _)| Some(*id) == entered);
        current.map_or_else(Current::none, |(id, metadata)| {
            Current::new(Id::from_u64(*id), metadata)
        })
    }
}

fn entered() -> Vec<u64> {
    ENTERED.with_borrow(Clone::clone)
}

#[test]
fn the_span_is_carried_over() {
    tracing::subscriber::set_global_default(Spans).unwrap();
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let job = runtime.spawn(async {
        let span = tracing::info_span!("seven77");
        let inside = span.in_scope(|| blocking(entered));
        (inside, blocking(entered))
    });
    assert_eq!(runtime.block_on(job).unwrap(), (vec![7], vec![]));
    let inside = tracing::info_span!("three").in_scope(|| runtime.block_on(offload(entered)));
    assert_eq!(inside.unwrap(), [5]);
}
