//! What all requests share.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use weald::process::SupervisorPid;

use crate::model::{Boards, hash};

use super::config::Config;
use super::counts::Counts;
use super::followed::Live;
use super::kept_lists::KeptLists;
use super::limiter::Limiter;
use super::moderators::Moderators;
use super::proofs::Proofs;
use super::streams::Streams;
use super::visitor::hex;

/// How often one address may look into the past of the boards at once.
const LOOKS: usize = 4;
/// How many exports one address may read at once, and how many all may: each keeps a version of a board alive.
const EXPORTS: [usize; 2] = [4, 64];
/// The same of exports that were read from the disk: each keeps an earlier moment of all boards in memory.
const PAST_EXPORTS: [usize; 2] = [1, 2];

/// What all requests share. A clone is the same.
#[derive(Clone)]
pub(crate) struct App(Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) boards: Boards,
    pub(crate) config: Config,
    pub(crate) reads: Limiter<IpAddr>,
    pub(crate) writes: Limiter<IpAddr>,
    pub(crate) proofs: Proofs,
    pub(crate) moderators: Moderators,
    pub(crate) counts: Counts,
    /// Above the processes of the boards that somebody reads live.
    pub(crate) readers: SupervisorPid,
    pub(crate) live: Live,
    pub(crate) lists: KeptLists,
    /// The streams of events that each address has open.
    pub(crate) streams: Streams,
    /// What each address just asks of the past.
    pub(crate) looks: Streams,
    /// The exports that are being sent, and those among them of boards that were read from the disk.
    pub(crate) exports: Streams,
    pub(crate) past_exports: Streams,
    /// Requests that are being answered.
    pub(crate) in_flight: AtomicUsize,
    /// A word for what stands around all pages while the board is served.
    pub(crate) mark: String,
    began: Instant,
}

impl App {
    pub(crate) fn new(boards: Boards, config: Config, readers: SupervisorPid) -> Self {
        let has_moderators = [u8::from(config.moderator.is_some())];
        let parts = [config.title.as_bytes(), &has_moderators];
        let mark = hex(&hash("site", &parts)[..4]);
        Self(Arc::new(Shared {
            lists: KeptLists::new(boards.clone(), config.keeps_lists),
            boards,
            readers,
            live: Live::default(),
            reads: Limiter::new(config.reads),
            writes: Limiter::new(config.writes),
            proofs: Proofs::new(config.tries),
            moderators: Moderators::new(config.moderator.clone(), config.tries),
            // All readers together have a bound of their own, beyond which the answer is another one.
            streams: Streams::new(config.most_readers_of_one, usize::MAX),
            looks: Streams::new(LOOKS, usize::MAX),
            exports: Streams::new(EXPORTS[0], EXPORTS[1]),
            past_exports: Streams::new(PAST_EXPORTS[0], PAST_EXPORTS[1]),
            config,
            counts: Counts::default(),
            in_flight: AtomicUsize::new(0),
            mark,
            began: Instant::now(),
        }))
    }
}

impl Shared {
    /// How long the board has been served.
    pub(crate) fn age(&self) -> Duration {
        self.age_at(Instant::now())
    }

    /// The same at a moment that is known already.
    pub(crate) fn age_at(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.began)
    }
}

impl std::ops::Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}
