//! The program's allocator, and how it returns memory to the system.
//!
//! Trees and messages are constantly allocated on one thread and freed on another, which mimalloc does best. It keeps
//! what is freed, until the thread that allocated it allocates again.

#![allow(unsafe_code)]

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

unsafe extern "C" {
    /// Part of mimalloc, which is linked as the allocator. Frees what the calling thread does not use, and, if `force`
    /// is set, returns the pages that no thread uses at once.
    safe fn mi_collect(force: bool);
}

/// Returns memory that the calling thread does not use to the system.
pub(crate) fn collect() {
    mi_collect(true);
}

/// No fault of a page takes two megabytes from now on, which mimalloc asks for. The first touch of so much takes up to
/// five milliseconds, because the system clears it, and meanwhile a worker answers nobody. A system that refuses this
/// only answers later at times.
pub(crate) fn take_small_pages() {
    #[cfg(target_os = "linux")]
    let _refused = rustix::thread::disable_transparent_huge_pages(true);
}
