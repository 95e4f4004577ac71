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
