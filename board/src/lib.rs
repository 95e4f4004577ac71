//! A bulletin board on Weald: HTTP, supervised processes, and a forest that keeps every version.
//!
//! - Every board is a tree of the forest, every message a node, and every change one commit.
//! - A page is computed from one version, which never changes; so it neither waits nor makes a writer wait.
//! - [`walk_through`] is the page that walks through the code.
//!
//! The modules are in layers: a file imports only from its own layer and from earlier ones in this list.

#![forbid(unsafe_code)]

pub mod walk_through {
    #![doc = include_str!("../docs/board.md")]
}

/// What a board is made of; it knows no HTTP.
pub mod model {
    // Words: addresses, texts and authors.
    mod author;
    mod demo_clock;
    mod draft;
    mod name;
    mod pages;
    mod post;

    // One message, and why something is refused.
    mod error;
    mod happened;
    mod message;
    mod passphrase;

    // One board in one version.
    mod store;

    mod replays;

    mod board_at;

    mod addresses;
    mod refusals;
    mod search_index;
    mod thread;

    // All boards: writing, changing, history, search, moderation.
    mod audit;
    mod boards;
    mod create;
    mod difference;
    mod erasing;
    mod exchange;
    mod follow;
    mod freeing;
    mod history;
    mod measures;
    mod names;
    mod revise;
    mod room;
    mod search;
    mod write;

    pub use audit::{By, Entry, MAX_WHY, Measure, check_moderator};
    pub(crate) use author::hash;
    pub use author::{Owner, Requester, Token};
    pub use board_at::{Answers, BoardAt, BoardInfo, TOPICS, Topic};
    pub use boards::{Boards, Versions};
    pub use create::MAX_ABOUT;
    pub use demo_clock::DemoClock;
    pub use difference::{Piece, difference};
    pub use draft::{
        ANONYMOUS, Draft, Field, FieldProblem, Invalid, Kind, MAX_AUTHOR, MAX_TEXT, MAX_TITLE,
    };
    pub(crate) use draft::{check, one_line};
    pub use error::BoardError;
    pub use exchange::{Arrival, Departure, Traveller};
    pub use follow::Follow;
    pub use happened::Happened;
    pub use history::{History, State};
    pub use message::{Body, Deed, DeletedBy, Message};
    pub use name::{BoardName, NotAName};
    pub use names::NameKey;
    pub use pages::Pages;
    pub use passphrase::{Hashed, MAX_PASSPHRASE, MIN_PASSPHRASE, NotAHash, check_passphrase};
    pub use post::Post;
    pub use revise::Target;
    pub use search::{FOUND, MOST_FOUND};
    pub(crate) use search_index::words;
    pub use store::Store;
    pub use thread::{ANSWERS, Shown, Thread};
    pub use write::{MAX_DEPTH, NewMessage, Written};
}

/// Times and Markdown as pages have them.
mod text {
    pub(crate) mod hits;
    mod links;

    pub(crate) mod markdown;
    pub(crate) mod moment;
}

/// HTTP: pages that work without scripts, and a JSON API, both over the same functions.
mod web {
    // Settings; the clients, and how often they may ask.
    pub(crate) mod origin;
    pub(crate) mod proxies;

    pub(crate) mod config;

    pub(crate) mod broadcast;
    pub(crate) mod client;
    pub(crate) mod counts;
    pub(crate) mod limiter;

    pub(crate) mod guesses;
    pub(crate) mod moderators;
    pub(crate) mod pairs;
    pub(crate) mod proofs;
    pub(crate) mod streams;
    pub(crate) mod visitor;

    pub(crate) mod followed;
    pub(crate) mod journal;
    pub(crate) mod json;
    pub(crate) mod kept_lists;
    pub(crate) mod safety;

    // A request and its answer.
    pub(crate) mod app;
    pub(crate) mod kept;
    pub(crate) mod problem;

    pub(crate) mod ask;

    pub(crate) mod proving;
    pub(crate) mod signing;

    pub(crate) mod answer;

    // The values that are shown.
    pub(crate) mod assets;
    pub(crate) mod paging;
    pub(crate) mod views;

    /// The JSON API.
    pub(crate) mod api {
        pub(crate) mod values;

        mod refused;

        pub(crate) mod change;
        pub(crate) mod read;

        pub(crate) mod moderate;
        pub(crate) mod names;

        pub(crate) use refused::refused;
    }
    /// The pages, one file each.
    pub(crate) mod pages {
        pub(crate) mod problem;

        pub(crate) mod history;
        pub(crate) mod measures;
        pub(crate) mod thread;

        pub(crate) mod admin;
        pub(crate) mod board;
        pub(crate) mod boards;
        pub(crate) mod change;
        pub(crate) mod feed;
        pub(crate) mod moderate;
        pub(crate) mod names;
        pub(crate) mod search;
        pub(crate) mod write;
    }
    pub(crate) mod lines;

    pub(crate) mod exchange;
    pub(crate) mod get_writes;
    pub(crate) mod live;
    pub(crate) mod metrics;
    pub(crate) mod state;

    // All addresses, the way of a request, and the server.
    pub(crate) mod quick;
    pub(crate) mod quick_post;
    pub(crate) mod routes;

    pub(crate) mod respond;

    pub(crate) mod server;
}

pub mod demo;

pub use web::config::{Config, Rate, Storage};
pub use web::origin::{NotAnOrigin, Origin};
pub use web::proxies::{Network, NotANetwork};
pub use web::server::{Running, StartError, serve};
