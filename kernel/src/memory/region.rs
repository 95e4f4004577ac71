//! Address space from the system, handed out in chunks.
//!
//! Regions are 64 MiB, aligned to 2 MiB and advised for huge pages, so that first touches fault once per 2 MiB and
//! not once per 4 KiB. They are never unmapped; a chunk that is given back keeps its address, loses its
//! pages, and reads as zero.

#![allow(unsafe_code)]

use std::{
    ffi::c_void,
    ptr::{self, NonNull},
    sync::Mutex,
};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};

use crate::{memory::room::with_room, sys::lock};

/// The size of a chunk, from which one class cuts its blocks. A power of two, so that a block's chunk is found by
/// masking.
pub(super) const CHUNK: usize = 64 << 10;
const REGION: usize = 64 << 20;
const HUGE_PAGE: usize = 2 << 20;

struct Regions {
    /// Chunks that were given back; they read as zero.
    empty: Vec<SendPtr>,
    /// The uncut rest of the newest region.
    rest: Option<(SendPtr, usize)>,
}

/// A pointer into a region.
#[derive(Clone, Copy)]
pub(super) struct SendPtr(pub(super) NonNull<u8>);

// SAFETY: it is an address; each access is justified where it happens.
unsafe impl Send for SendPtr {}

static REGIONS: Mutex<Regions> = Mutex::new(Regions {
    empty: Vec::new(),
    rest: None,
});

/// A chunk of zeroes that is in no other use. None if the system refuses the address space.
pub(super) fn take_chunk() -> Option<NonNull<u8>> {
    let chunk = lock(&REGIONS).take();
    if chunk.is_some() {
        return chunk;
    }
    // Before the lock, as it allocates (see `room`).
    let huge_pages = std::env::var_os("WEALD_HUGE_PAGES").is_none_or(|value| value != "off");
    let mut regions = lock(&REGIONS);
    // Another thread may have reserved a region meanwhile.
    regions.take().or_else(|| {
        regions.rest = Some((SendPtr(reserve(huge_pages)?), REGION));
        regions.take()
    })
}

/// Takes back a chunk in which nothing was written. If the list of them cannot grow, its address space is lost, which
/// takes no memory.
pub(super) fn put_back(chunk: NonNull<u8>) {
    let mut regions = lock(&REGIONS);
    if regions.empty.len() < regions.empty.capacity() {
        regions.empty.push(SendPtr(chunk));
    }
}

impl Regions {
    fn take(&mut self) -> Option<NonNull<u8>> {
        if let Some(chunk) = self.empty.pop() {
            return Some(chunk.0);
        }
        let (SendPtr(start), left) = self.rest.take()?;
        // SAFETY: at least one chunk is left in the region from `start` on.
        let next = unsafe { start.byte_add(CHUNK) };
        self.rest = (left > CHUNK).then_some((SendPtr(next), left - CHUNK));
        Some(start)
    }
}

/// Returns the pages of `chunks`, in which no block is in use, to the system, and their total size to the caller.
pub(super) fn give_back(mut chunks: Vec<SendPtr>) -> usize {
    chunks.sort_by_key(|chunk| chunk.0);
    // Neighbours are returned together, so that a huge page goes back whole instead of being split.
    for run in chunks.chunk_by(|a, b| a.0.addr().get() + CHUNK == b.0.addr().get()) {
        let start = run[0].0.as_ptr().cast::<c_void>();
        // SAFETY: the run is mapped, private and anonymous, and no block in it is in use.
        let dropped = unsafe { madvise(start, run.len() * CHUNK, Advice::LinuxDontNeed) };
        dropped.expect("a mapped range can be given back");
    }
    let bytes = chunks.len() * CHUNK;
    let more = chunks.len();
    with_room(
        &REGIONS,
        more,
        |regions| &mut regions.empty,
        |regions| regions.empty.append(&mut chunks),
    );
    bytes
}

/// A new region. None if the system refuses it.
fn reserve(huge_pages: bool) -> Option<NonNull<u8>> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new anonymous mapping at an address of the system's choice touches nothing else.
    let mapped = unsafe { mmap_anonymous(ptr::null_mut(), REGION + HUGE_PAGE, protection, flags) };
    let mapped = mapped.ok()?;
    let skip = mapped.addr().next_multiple_of(HUGE_PAGE) - mapped.addr();
    // SAFETY: less than one huge page is skipped, and one more than the region was mapped.
    let start = unsafe { mapped.byte_add(skip) };
    if huge_pages {
        // A system without huge pages refuses; the memory works all the same.
        // SAFETY: the range was mapped above; the advice changes no contents.
        let _advised = unsafe { madvise(start, REGION, Advice::LinuxHugepage) };
    }
    NonNull::new(start.cast())
}
