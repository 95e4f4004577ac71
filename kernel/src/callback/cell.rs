//! The single block of a callback: its timer entry, its type and site, its link in the owner's list, and its closure.
//!
//! # Safety
//!
//! The argument, by situation; the SAFETY comments of this folder point to it.
//!
//! - **claim**: a block lives while its phase word counts a claim. A list (a wheel's slot, a queue of ready
//!   callbacks) holds the scheduler's claim; a [`Handle`](crate::callback::Handle) holds its own. A thread that
//!   gets a pointer from an owner's list takes a claim under that list's lock; a callback leaves the list only
//!   under the same lock.
//! - **closure**: only the thread that set the phase to `RUNNING` or `TAKEN` touches it; or the scheduler does,
//!   while nobody else has a claim and there is no owner.
//! - **layout**: `Cell<L, B>` is `repr(C)` and begins with its head, and so with its entry; with an owner, its
//!   link comes next.

#![allow(unsafe_code)]

use std::{
    alloc::Layout,
    cell::UnsafeCell,
    marker::PhantomData,
    mem::{ManuallyDrop, needs_drop, offset_of},
    panic::{AssertUnwindSafe, Location, catch_unwind},
    ptr::NonNull,
    sync::Arc,
};

use crate::{
    callback::{Next, group::Group, near::Near},
    job::name::{UnitCode, UnitName},
    memory::{self, BlockKind},
    report::payload,
    report::{self, panic_message},
    timer::{
        entry::{self, Entry, EntryPtr},
        phase::Take,
    },
};

/// The beginning of every callback's block.
#[repr(C)]
pub(super) struct Head {
    pub(super) entry: Entry,
    pub(super) kind: CallbackKind,
}

/// The type and the site of a callback.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct CallbackKind {
    calls: Near<Calls>,
    site: Near<Location<'static>>,
}

impl Head {
    #[inline(always)]
    pub(super) fn calls(&self) -> &'static Calls {
        self.kind.calls.get()
    }
}

impl CallbackKind {
    /// The name in reports.
    pub(super) fn name(self) -> UnitName {
        UnitName {
            code: &self.calls.get().code,
            site: self.site.get(),
        }
    }
}

/// The link of a callback in its owner's list. Touched only under the list's lock, except `group`.
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
    /// None if the closure needs no destructor.
    drop: Option<unsafe fn(NonNull<()>)>,
    free: unsafe fn(NonNull<()>),
    /// The offset of the closure.
    body: usize,
    pub(super) has_owner: bool,
    /// Whether a run moves the closure out.
    pub(super) runs_once: bool,
    /// What reports name it by.
    code: UnitCode,
}

/// A closure and how it is called.
pub(super) trait Closure: Send + 'static {
    const RUNS_ONCE: bool;

    /// # Safety
    /// `body` holds a closure that the caller has to itself; a closure that runs once is gone after the call.
    unsafe fn run(body: NonNull<Self>) -> Next;

    fn name() -> &'static str;
}

/// A closure that runs once.
pub(super) struct RunOnce<F>(pub(super) F);
/// A closure that runs in rounds, under the name of the type `N`.
pub(super) struct RunRounds<F, N = F>(F, PhantomData<fn(N)>);

impl<F, N> RunRounds<F, N> {
    pub(super) fn new(run: F) -> RunRounds<F, N> {
        RunRounds(run, PhantomData)
    }
}

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

impl<F: FnMut() -> Next + Send + 'static, N: 'static> Closure for RunRounds<F, N> {
    const RUNS_ONCE: bool = false;

    unsafe fn run(body: NonNull<Self>) -> Next {
        let mut body = body;
        // SAFETY: the caller's promise.
        let RunRounds(run, _) = unsafe { body.as_mut() };
        run()
    }

    fn name() -> &'static str {
        std::any::type_name::<N>()
    }
}

/// A whole block; `L` is `OwnedLink` or `()`.
#[repr(C)]
struct Cell<L, B> {
    head: Head,
    link: L,
    body: ManuallyDrop<B>,
}

impl<L: OptionalLink, B: Closure> Cell<L, B> {
    const CALLS: Calls = Calls {
        run: Self::run,
        drop: if needs_drop::<B>() {
            Some(Self::drop)
        } else {
            None
        },
        free: Self::free,
        body: offset_of!(Self, body),
        has_owner: L::HAS_OWNER,
        runs_once: B::RUNS_ONCE,
        code: UnitCode {
            what: "callback",
            type_name: B::name,
        },
    };
    const STATIC: &'static Calls = &Self::CALLS;

    unsafe fn run(body: NonNull<()>) -> Next {
        // SAFETY: closure: the caller's promise.
        unsafe { B::run(body.cast()) }
    }

    unsafe fn drop(body: NonNull<()>) {
        // SAFETY: closure: the caller's promise, and the closure is not used again.
        unsafe { body.cast::<B>().drop_in_place() }
    }

    unsafe fn free(block: NonNull<()>) {
        let cell = block.cast::<Self>().as_ptr();
        // SAFETY: claim: the caller had the last one.
        let link = unsafe { &raw mut (*cell).link };
        // SAFETY: as above; the link is not used again.
        unsafe { link.drop_in_place() };
        // SAFETY: `alloc` allocated the block with the same kind and layout.
        unsafe { memory::free(BlockKind::Node, Layout::new::<Self>(), block.cast()) };
    }
}

trait OptionalLink {
    const HAS_OWNER: bool;
}
impl OptionalLink for () {
    const HAS_OWNER: bool = false;
}
impl OptionalLink for OwnedLink {
    const HAS_OWNER: bool = true;
}

/// The address of a callback's block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallbackPtr(NonNull<Head>);

// SAFETY: an address; the head of this file says which threads may follow it, and closures are `Send`.
unsafe impl Send for CallbackPtr {}
// SAFETY: as above.
unsafe impl Sync for CallbackPtr {}

/// A new callback, pending and in no list, with the claims of the scheduler and of the handle.
#[inline]
pub(super) fn new<B: Closure>(
    owner: Option<Arc<Group>>,
    site: &'static Location<'static>,
    body: B,
) -> CallbackPtr {
    match owner {
        None => alloc((), site, body),
        Some(group) => alloc(
            OwnedLink {
                group,
                next: UnsafeCell::new(None),
                prev: UnsafeCell::new(None),
            },
            site,
            body,
        ),
    }
}

#[inline]
fn alloc<L: OptionalLink, B: Closure>(
    link: L,
    site: &'static Location<'static>,
    body: B,
) -> CallbackPtr {
    let block = memory::alloc(BlockKind::Node, Layout::new::<Cell<L, B>>()).cast::<Cell<L, B>>();
    let cell = Cell {
        head: Head {
            entry: Entry::new(entry::TimerKind::Callback, 0, 0),
            kind: CallbackKind {
                calls: Near::new(Cell::<L, B>::STATIC),
                site: Near::new(site),
            },
        },
        link,
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
    /// The caller has a claim for as long as the reference is used.
    #[inline(always)]
    pub(super) unsafe fn head<'a>(self) -> &'a Head {
        // SAFETY: claim: the caller's promise.
        unsafe { self.0.as_ref() }
    }

    /// # Safety
    /// As [`head`](CallbackPtr::head).
    pub(super) unsafe fn link<'a>(self) -> Option<&'a OwnedLink> {
        // SAFETY: the caller's promise.
        let calls = unsafe { self.head() }.calls();
        // SAFETY: the caller's promise.
        unsafe { self.link_by(calls) }
    }

    /// # Safety
    /// As [`head`](CallbackPtr::head); `calls` are the callback's.
    #[inline(always)]
    pub(super) unsafe fn link_by<'a>(self, calls: &Calls) -> Option<&'a OwnedLink> {
        // SAFETY: the caller's promise.
        calls.has_owner.then(|| unsafe { self.owned_link() })
    }

    /// # Safety
    /// As [`head`](CallbackPtr::head), and the callback has an owner.
    #[inline(always)]
    pub(super) unsafe fn owned_link<'a>(self) -> &'a OwnedLink {
        // SAFETY: the caller's promise.
        debug_assert!(unsafe { self.head() }.calls().has_owner, "it has no link");
        // SAFETY: layout: with an owner, a link follows the head.
        let link = unsafe { self.0.add(1) }.cast::<OwnedLink>();
        // SAFETY: as above.
        unsafe { link.as_ref() }
    }

    /// # Safety
    /// As [`head`](CallbackPtr::head), and the caller has the closure to itself. A closure that runs once is gone after
    /// the call. `calls` are the callback's: a runner reads them once, because the compiler would read them again after
    /// each change of the phase.
    #[inline(always)]
    pub(super) unsafe fn run(self, calls: &Calls) -> Next {
        // SAFETY: layout: the closure is at this offset.
        let body = unsafe { self.0.cast::<()>().byte_add(calls.body) };
        // SAFETY: the caller's promise.
        unsafe { (calls.run)(body) }
    }

    /// Drops the closure; reports a panic of its destructor.
    ///
    /// # Safety
    /// As [`run`](CallbackPtr::run); the closure is gone after the call.
    #[inline]
    pub(super) unsafe fn drop_body(self) {
        // SAFETY: the caller's promise.
        if let Some(drop) = unsafe { self.head() }.calls().drop {
            // SAFETY: the caller's promise.
            unsafe { self.drop_body_by(drop) };
        }
    }

    /// # Safety
    /// As [`drop_body`](CallbackPtr::drop_body); `drop` is the call for the closure's type.
    #[inline(never)]
    unsafe fn drop_body_by(self, drop: unsafe fn(NonNull<()>)) {
        // SAFETY: the caller's promise.
        let head = unsafe { self.head() };
        let calls = head.calls();
        // SAFETY: layout: the closure is at this offset.
        let body = unsafe { self.0.cast::<()>().byte_add(calls.body) };
        // SAFETY: the caller's promise.
        let dropped = catch_unwind(AssertUnwindSafe(|| unsafe { drop(body) }));
        if let Err(payload) = dropped {
            // A cancel: the job that drops the closure, such as one that cancels the callback, may be cancelled itself.
            if !payload::delivers_cancel_again(&payload) {
                let UnitName { code, site } = head.kind.name();
                let message = panic_message(payload.as_ref());
                report::callback_panicked((code.type_name)(), site, &message);
            }
            payload::discard(payload);
        }
    }

    /// Gives up one of the caller's claims.
    ///
    /// # Safety
    /// The caller has a claim. If it is the last one, the closure is gone.
    #[inline]
    pub(super) unsafe fn release(self) {
        // SAFETY: the caller still has the claim.
        let head = unsafe { self.head() };
        if head.calls().has_owner {
            // SAFETY: the caller's promise, and there is an owner.
            return unsafe { self.release_owned() };
        }
        // Without an owner nobody could take a claim meanwhile; and a load costs less than a locked operation.
        if head.entry.phase.is_last() || head.entry.phase.release() {
            // SAFETY: it was the last claim.
            unsafe { self.free() };
        }
    }

    /// # Safety
    /// As [`release`](CallbackPtr::release), and the callback has an owner.
    #[inline(never)]
    unsafe fn release_owned(self) {
        // SAFETY: the caller still has the claim.
        let head = unsafe { self.head() };
        // SAFETY: as above, and the caller's promise.
        let group = unsafe { &self.owned_link().group };
        // SAFETY: as above.
        if head.entry.phase.is_last() && unsafe { group.leave_with_last_claim(self) } {
            // SAFETY: it was the last claim, and the block is in no list.
            unsafe { (head.calls().free)(self.0.cast()) };
        } else if head.entry.phase.release() {
            // SAFETY: it was the last claim.
            unsafe { self.free() };
        }
    }

    /// # Safety
    /// The caller gave up the last claim, and the closure is gone.
    #[inline]
    pub(super) unsafe fn free(self) {
        // SAFETY: claim: the caller had the last one.
        let calls = unsafe { self.head() }.calls();
        // SAFETY: the caller's promise.
        unsafe { self.free_by(calls) };
    }

    /// # Safety
    /// As [`free`](CallbackPtr::free); `calls` are the callback's.
    #[inline(always)]
    pub(super) unsafe fn free_by(self, calls: &Calls) {
        if calls.has_owner {
            // SAFETY: as above.
            let link = unsafe { self.owned_link() };
            link.group.leave(self);
        }
        // SAFETY: as above; the block is in no list now.
        unsafe { (calls.free)(self.0.cast()) };
    }
}

/// Cancels a callback that is in no list.
///
/// # Safety
/// The caller has the scheduler's claim, and gives it up.
pub(super) unsafe fn discard(callback: CallbackPtr) {
    // SAFETY: the caller's promise.
    if unsafe { callback.head() }.entry.take() == Take::Won {
        // SAFETY: closure: the callback was just taken.
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
