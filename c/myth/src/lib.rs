//! The functions of MassiveThreads for C and C++, on Weald's scheduler: the library `libmyth`.
//!
#![doc = include_str!("page.md")]

// To follow a thread, read `face/threads` (`create`) → `thread` (`create`: a block, and a fiber that migrates; with one
// worker it runs at once, `begin_at_once`; `run`) → `machine` (`call`, which an exit ends with `leave`) → `keys`
// (`end`) → `thread` (`join`, which frees the block). The functions of `myth/myth.h` are in `face`: each takes what C
// passes, calls the tool, and catches panics (`guard`).
//
// To follow a wait, read a tool, such as `barrier` (`wait`) → `wait` (`wait_in`; `wait_in_frame`: saves the error
// number and the state of exceptions, `saved`; puts the node into the tool's queue) → `queue` (`push`). Another thread
// takes the node (`pop`), and wakes it when it drops what it took (`Taken`). The first call: `runtime` (`start`) →
// `main_thread` (`enter`: the caller goes on as a fiber's code, on its own stack).

// The atomics: those of std, or those of loom.
mod sys;

// Below the threads: stack pointers, and what a C program expects to keep over a switch.
mod machine;
mod saved;

// Plain data: settings, points in time, cores; whether a runtime ends; queues of waiting threads; what a thread keeps
// under keys.
mod bind;
mod clock;
mod ending;
mod keys;
mod queue;
mod settings;

// The one runtime of the program; threads, the first one among them, and how they wait.
mod main_thread;
mod runtime;
mod thread;
mod wait;

// What threads wait with.
mod barrier;
mod join_counter;
mod mutex;
mod once;
mod rwlock;
mod uncond;

mod cond;

mod full_empty;

// The functions that C calls. Each catches panics (`guard`).
mod guard;

mod face {
    //! The functions of `myth/myth.h`, which says what each does.

    mod attributes;
    mod keys;
    mod locks;
    mod meetings;
    mod runtime;
    mod spin;
    mod threads;
    mod yields;
}

#[cfg(all(loom, test))]
mod models;
