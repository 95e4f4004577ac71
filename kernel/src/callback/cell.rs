//! The one block of a callback: what the wheel knows, whose it is, and the closure.
//!
//! # Safety
//!
//! The argument is made here once, by situation; the blocks of this directory point to it.
//!
//! - **claim**: a block lives while its phase word counts a claim. A list (slot of a wheel, queue of
//!   ready ones) holds the scheduler's; a [`Handle`](crate::callback::Handle) holds one of its own; who has a
//!   pointer from the list of an owner takes one under that list's lock, under which alone it is left.
//! - **closure**: it is touched only by who made the phase `RUNNING` or `TAKEN`, or by the scheduler
//!   while nobody else has a claim and there is no owner.
//! - **layout**: `Cell<M, B>` is `repr(C)` and begins with its head, and so with its entry; with an
//!   owner, its member comes next.

#![allow(unsafe_code)]

use std::{
    alloc::Layout,
    cell::UnsafeCell,
    mem::{ManuallyDrop, offset_of},
    panic::{AssertUnwindSafe, catch_unwind},
    ptr::NonNull,
    sync::Arc,
};

use crate::{
    callback::{Next, group::Group},
    memory::{self, BlockKind},
    report::{self, panic_message},
    timer::{
        entry::{self, Entry, EntryPtr},
        phase::Take,
    },
};

/// What every callback's block begins with.
#[repr(C)]
pub(super) struct Head {
    pub(super) entry: Entry,
    pub(super) calls: &'static Calls,
}

/// The place of a callback among those of its owner. Only under the owner's lock, but for `group`.
#[repr(C)]
pub(super) struct OwnedLink {
    /// Never changes.
    pub(super) group: Arc<Group>,
    pub(super) next: UnsafeCell<Option<CallbackPtr>>,
    pub(super) prev: UnsafeCell<Option<CallbackPtr>>,
}

/// The calls that depend on the closure's type.
pub(super) struct Calls {
    run: unsafe fn(NonNull<()>) -> Next,
    drop: unsafe fn(NonNull<()>),
    free: unsafe fn(NonNull<()>),
    /// Where the closure lies.
    body: usize,
    pub(super) has_owner: bool,
    /// Whether a run moves the closure out.
    pub(super) runs_once: bool,
    pub(super) name: fn() -> &'static str,
}

/// A closure and how it is called.
pub(super) trait Closure: Send + 'static {
    const RUNS_ONCE: bool;

    /// # Safety
    /// `body` holds a closure that is the caller's; if it runs once, it is gone after the call.
    unsafe fn run(body: NonNull<Self>) -> Next;

    fn name() -> &'static str;
}

/// A closure that runs once.
pub(super) struct RunOnce<F>(pub(super) F);
/// A closure that runs in rounds.
pub(super) struct RunRounds<F>(pub(super) F);

impl<F: FnOnce() + Send + 'static> Closure for RunOnce<F> {
    const RUNS_ONCE: bool = true;

    unsafe fn run(body: NonNull<Self>) -> Next {
        // SAFETY: the caller's promise: nobody reads it again.
        let RunOnce(run) = unsafe { body.read() };
        run();
        Next::Ended
    }

    fn name() -> &'static str {
        std::any::type_name::<F>()
    }
}

impl<F: FnMut() -> Next + Send + 'static> Closure for RunRounds<F> {
    const RUNS_ONCE: bool = false;

    unsafe fn run(body: NonNull<Self>) -> Next {
        let mut body = body;
        // SAFETY: the caller's promise.
        let RunRounds(run) = unsafe { body.as_mut() };
        run()
    }

    fn name() -> &'static str {
        std::any::type_name::<F>()
    }
}

/// A whole block; `M` is `OwnedLink` or nothing.
#[repr(C)]
struct Cell<M, B> {
    head: Head,
    member: M,
    body: ManuallyDrop<B>,
}

impl<M: IsMember, B: Closure> Cell<M, B> {
    const CALLS: Calls = Calls {
        run: Self::run,
        drop: Self::drop,
        free: Self::free,
        body: offset_of!(Self, body),
        has_owner: M::IS,
        runs_once: B::RUNS_ONCE,
        name: B::name,
    };
    const STATIC: &'static Calls = &Self::CALLS;

    unsafe fn run(body: NonNull<()>) -> Next {
        // SAFETY: closure: the caller's promise.
        unsafe { B::run(body.cast()) }
    }

    unsafe fn drop(body: NonNull<()>) {
        // SAFETY: closure: the caller's promise, and it is not looked at again.
        unsafe { body.cast::<B>().drop_in_place() }
    }

    unsafe fn free(block: NonNull<()>) {
        let cell = block.cast::<Self>().as_ptr();
        // SAFETY: claim: the caller had the last one.
        let member = unsafe { &raw mut (*cell).member };
        // SAFETY: as above; it is not looked at again.
        unsafe { member.drop_in_place() };
        // SAFETY: `new` took the block from the same kind and layout.
        unsafe { memory::free(BlockKind::Node, Layout::new::<Self>(), block.cast()) };
    }
}

trait IsMember {
    const IS: bool;
}
impl IsMember for () {
    const IS: bool = false;
}
impl IsMember for OwnedLink {
    const IS: bool = true;
}

/// The address of a callback's block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallbackPtr(NonNull<Head>);

// SAFETY: an address; the head of this file says who may follow it, and closures are `Send`.
unsafe impl Send for CallbackPtr {}
// SAFETY: as above.
unsafe impl Sync for CallbackPtr {}

/// A new callback, pending and in no list: claims of the scheduler and of the handle.
#[inline]
pub(super) fn new<B: Closure>(owner: Option<Arc<Group>>, body: B) -> CallbackPtr {
    match owner {
        None => make((), body),
        Some(group) => make(
            OwnedLink {
                group,
                next: UnsafeCell::new(None),
                prev: UnsafeCell::new(None),
            },
            body,
        ),
    }
}

#[inline]
fn make<M: IsMember, B: Closure>(member: M, body: B) -> CallbackPtr {
    let block = memory::alloc(BlockKind::Node, Layout::new::<Cell<M, B>>()).cast::<Cell<M, B>>();
    let cell = Cell {
        head: Head {
            entry: Entry::new(entry::TimerKind::Callback, 0, 0),
            calls: Cell::<M, B>::STATIC,
        },
        member,
        body: ManuallyDrop::new(body),
    };
    // SAFETY: the block is new and has room for the cell.
    unsafe { block.write(cell) };
    CallbackPtr(block.cast())
}

impl CallbackPtr {
    /// # Safety
    /// The entry is a callback's.
    pub(super) unsafe fn of(entry: EntryPtr) -> CallbackPtr {
        CallbackPtr(entry.as_raw().cast())
    }

    #[inline(always)]
    pub(super) fn entry(self) -> EntryPtr {
        EntryPtr::from_raw(self.0.cast())
    }

    /// # Safety
    /// The caller has a claim for as long as the answer is used.
    #[inline(always)]
    pub(super) unsafe fn head<'a>(self) -> &'a Head {
        // SAFETY: claim: the caller's promise.
        unsafe { self.0.as_ref() }
    }

    /// # Safety
    /// As [`head`](CallbackPtr::head).
    pub(super) unsafe fn member<'a>(self) -> Option<&'a OwnedLink> {
        // SAFETY: the caller's promise.
        let has_owner = unsafe { self.head() }.calls.has_owner;
        if !has_owner {
            return None;
        }
        // SAFETY: layout: with an owner, a member lies behind the head.
        let member = unsafe { self.0.add(1) }.cast::<OwnedLink>();
        // SAFETY: as above.
        Some(unsafe { member.as_ref() })
    }

    /// # Safety
    /// As [`head`](CallbackPtr::head), and the closure is the caller's. If it runs once, it is gone after that.
    #[inline(always)]
    pub(super) unsafe fn run(self) -> Next {
        // SAFETY: the caller's promise.
        let calls = unsafe { self.head() }.calls;
        // SAFETY: layout: the closure lies there.
        let body = unsafe { self.0.cast::<()>().byte_add(calls.body) };
        // SAFETY: the caller's promise.
        unsafe { (calls.run)(body) }
    }

    /// Drops the closure; reports a panic in that.
    ///
    /// # Safety
    /// As [`run`](CallbackPtr::run); the closure is gone after that.
    pub(super) unsafe fn drop_body(self) {
        // SAFETY: the caller's promise.
        let calls = unsafe { self.head() }.calls;
        // SAFETY: layout: the closure lies there.
        let body = unsafe { self.0.cast::<()>().byte_add(calls.body) };
        // SAFETY: the caller's promise.
        let dropped = catch_unwind(AssertUnwindSafe(|| unsafe { (calls.drop)(body) }));
        if let Err(payload) = dropped {
            report::callback_panicked((calls.name)(), &panic_message(payload.as_ref()));
            // Its own destructor could panic again.
            std::mem::forget(payload);
        }
    }

    /// Gives up a claim of the caller's.
    ///
    /// # Safety
    /// The claim is the caller's, and the closure is gone if it is the last one.
    #[inline]
    pub(super) unsafe fn release(self) {
        // SAFETY: the caller still has the claim.
        let head = unsafe { self.head() };
        if head.entry.phase.release() {
            // SAFETY: it was the last one.
            unsafe { self.free() };
        }
    }

    /// # Safety
    /// The caller had the last claim, and the closure is gone.
    #[inline]
    pub(super) unsafe fn free(self) {
        // SAFETY: claim: the caller had the last.
        if let Some(member) = unsafe { self.member() } {
            member.group.leave(self);
        }
        // SAFETY: as above.
        let free = unsafe { self.head() }.calls.free;
        // SAFETY: as above; the block is in no list now.
        unsafe { free(self.0.cast()) };
    }
}

/// Cancels a callback that is in no list.
///
/// # Safety
/// The caller has the scheduler's claim, which it gives up.
pub(super) unsafe fn discard(callback: CallbackPtr) {
    // SAFETY: the caller's promise.
    if unsafe { callback.head() }.entry.phase.take() == Take::Won {
        // SAFETY: closure: it was just taken.
        unsafe { callback.drop_body() };
    }
    // SAFETY: the caller's promise.
    unsafe { callback.release() };
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_callback_takes_40_bytes_and_its_closure_and_24_more_with_an_owner() {
        assert_eq!(size_of::<Cell<(), RunOnce<[u64; 2]>>>(), 40 + 16);
        assert_eq!(size_of::<Cell<OwnedLink, RunOnce<[u64; 2]>>>(), 64 + 16);
    }
}
