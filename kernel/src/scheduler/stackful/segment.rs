//! A segment: a call that continues on another stack, and returns to the one that it came from.
//!
//! The safety argument is at the head of [`crate::scheduler::stackful::stack_context`].

#![allow(unsafe_code)]

use std::{
    any::Any,
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    ptr,
};

use crate::scheduler::stackful::stack_context::{StackContext, StackKind, root};
use crate::{
    report,
    scheduler::workers::context,
    stack::{self, Onto, SavedSp, Stack, switch},
};

/// Runs `f` on `stack`, and returns its result, as if `f` ran on top of the calling stack.
///
/// # Panics
/// If `f` does.
pub(crate) fn call_on<F: FnOnce() -> R, R>(stack: Stack, f: F) -> R {
    let cx = context::again();
    let stack_context = StackContext::on(stack, StackKind::Segment);
    // SAFETY: at the top.
    let context = unsafe { stack_context.as_ref() };
    context
        .root
        .set(root(cx).map_or(ptr::null(), ptr::from_ref));
    let former = cx.set_stack_context(stack_context.as_ptr());
    let mut call = Call {
        code: Some(f),
        result: None,
        back: Cell::new(SavedSp::NONE),
        former,
    };
    // SAFETY: nothing runs on the new stack.
    let begin = unsafe { switch::begin(StackContext::frames(stack_context), begin_call::<F, R>) };
    let address = (&raw mut call).expose_provenance();
    // SAFETY: the call switches back here, on whichever thread the stacks are then.
    unsafe {
        stack::switch(
            call.back.as_ptr(),
            begin,
            Onto::Ours(context.stack()),
            address,
        )
    };
    context::again().set_stack_context(former);
    // SAFETY: at the top: the call has ended.
    stack::give(unsafe { StackContext::into_stack(stack_context) });
    match call.result {
        Some(Ok(result)) => result,
        Some(Err(payload)) => resume_unwind(payload),
        None => report::impossible("a call came back without a result"),
    }
}

/// What a call on another stack needs; it is on the former stack, which waits.
struct Call<F, R> {
    code: Option<F>,
    result: Option<Result<R, Box<dyn Any + Send>>>,
    back: Cell<SavedSp>,
    former: *const StackContext,
}

/// The first function of the other stack; `call` is the address of the [`Call`].
extern "C" fn begin_call<F: FnOnce() -> R, R>(call: usize) -> ! {
    switch::arrived();
    let call = ptr::with_exposed_provenance_mut::<Call<F, R>>(call);
    // SAFETY: the former stack waits, and does not touch the call meanwhile.
    let call = unsafe { &mut *call };
    if let Some(code) = call.code.take() {
        call.result = Some(catch_unwind(AssertUnwindSafe(code)));
    }
    // SAFETY: at the top: the former stack waits.
    let onto = match unsafe { call.former.as_ref() } {
        Some(former) => Onto::Ours(former.stack()),
        None => Onto::ThreadStack,
    };
    // SAFETY: the former stack waits there; nothing is left in this frame.
    unsafe { switch::leave(call.back.get(), onto) }
}
