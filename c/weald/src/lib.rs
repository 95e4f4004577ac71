//! Weald for C, and for languages that can call C: the library `libweald`.
//!
#![doc = include_str!("page.md")]

// To follow a call, read `guard` (`guard`: keeps the error number, catches panics, notes a failure), `handles` (`get`:
// from a number to an object), a tool of `weald`, `waits` (`wait_at_most`), and `saved` (`across`: keeps what belongs
// to the unit). To follow a process, read `face/processes` (`in_process`, or `on_own_thread`), `call` (`run`: calls the
// function of the program), and `saved` (`begin`: notes the process that runs, which receives). The functions of
// `weald.h` are in `face`; `cargo xtask header` makes the header from them.

// Codes and their texts; the sentence of the last error.
pub mod codes;

// Handles, and messages as C owns them.
mod handles;
mod message;

// The process that runs, and what else belongs to a unit and not to its OS thread.
mod current;
mod saved;

// What every function of the face does around its code, how it waits, and how it calls functions of C.
mod arguments;
mod call;
mod guard;
mod waits;

// The process whose function calls: its inbox and its links; and the one of a function on an OS thread of its own.
mod calling;
mod passes_on;

pub mod face {
    //! The functions of `weald.h`.
    //!
    //! # Safety
    //! *Valid*: a pointer that C passes is null, or valid for its type and for the call, as the header says. References
    //! in the signatures stand for such pointers. Memory into which a function writes may have any content before.

    pub mod general;

    pub mod runtime;

    pub mod processes;

    pub mod links;

    pub mod names;

    pub mod threads;

    pub mod forks;

    pub mod locks;

    pub mod rwlocks;

    pub mod semaphores;

    pub mod channels;

    pub mod callbacks;

    pub mod views;

    pub mod forest;

    pub mod edits;

    pub mod versions;

    pub mod finding;
}
