//! The programs that fork and join, and the clients of servers, from the same files that Weald runs: see
//! `lab/src/programs.rs`.

#[path = "../../../src/programs/board.rs"]
pub mod board;
#[path = "../../../src/programs/board_size.rs"]
pub mod board_size;
#[path = "../../../src/programs/clients.rs"]
pub mod clients;
#[path = "../../../src/programs/dialogue.rs"]
pub mod dialogue;
#[path = "../../../src/programs/fib.rs"]
pub mod fib;
#[path = "../../../src/programs/fork.rs"]
pub mod fork;
#[path = "../../../src/programs/listeners.rs"]
pub mod listeners;
#[path = "../../../src/programs/load.rs"]
pub mod load;
#[path = "../../../src/programs/measure.rs"]
pub mod measure;
#[path = "../../../src/programs/queens.rs"]
pub mod queens;
#[path = "../../../src/programs/quicksort.rs"]
pub mod quicksort;
#[path = "../../../src/programs/scenes.rs"]
pub mod scenes;
#[path = "../../../src/programs/served.rs"]
pub mod served;
#[path = "../../../src/programs/slope.rs"]
pub mod slope;
#[path = "../../../src/programs/threads.rs"]
pub mod threads;
#[path = "../../../src/programs/tree.rs"]
pub mod tree;
#[path = "../../../src/programs/visitors.rs"]
pub mod visitors;
