//! A bulletin board on Weald: HTTP, supervised processes, and a forest that keeps every version.
//!
//! - Every board is a tree of the forest, every message a node, and every change one commit.
//! - A page is computed from one version, which never changes; so it neither waits nor makes a writer wait.
//! - `docs/board.md` walks through the code.
//!
//! The modules are in layers: a file imports only from its own layer and from earlier ones in this list.

#![forbid(unsafe_code)]

/// What a board is made of; it knows no HTTP.
pub mod model {
    // Words: addresses, what is written, and who writes.
    mod author;
    mod draft;
    mod name;
    mod pages;
    mod post;

    // One message, and why something is refused.
    mod error;
    mod message;

    // One board in one version.
    mod store;

    mod board_at;

    mod search_index;
    mod thread;

    // All boards: writing, changing, history, search.
    mod boards;
    mod difference;
    mod history;
    mod revise;
    mod search;
    mod write;

    pub use author::{Actor, Owner, Token};
    pub use board_at::{Answers, BoardAt, BoardInfo, TOPICS, Topic};
    pub use boards::{Boards, MAX_ABOUT};
    pub use difference::{Piece, difference};
    pub use draft::{
        ANONYMOUS, Draft, Field, Invalid, Kind, MAX_AUTHOR, MAX_TEXT, MAX_TITLE, Problem,
    };
    pub use error::BoardError;
    pub use history::{STATES, State};
    pub use message::{Body, Deed, DeletedBy, Message};
    pub use name::{BoardName, NotAName};
    pub use pages::Pages;
    pub use post::Post;
    pub use revise::Target;
    pub use search::{FOUND, MOST_FOUND};
    pub use store::Store;
    pub use thread::{ANSWERS, Shown, Thread};
    pub use write::{MAX_DEPTH, NewMessage, Written};
}
