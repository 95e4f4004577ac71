//! The functions of MassiveThreads for C and C++, on Weald's scheduler: the library `libmyth`.
//!
#![doc = include_str!("page.md")]

// Below the threads: stack pointers, and what a C program expects to keep over a switch.
mod machine;
mod saved;

// Plain data: settings, points in time, cores; queues of waiting threads; what a thread keeps under keys.
mod bind;
mod clock;
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
    mod threads;
}
