//! `stall`: its parameters, and what an offender does to its thread.
//!
//! An offender of a burst offends once, for two seconds, and not at all if it starts after the burst; every other one
//! rests and offends, again and again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::args::Call;
use crate::measure::compute_for;
use crate::programs::ticks::CALM;
use crate::report::bad_usage;

/// How long an offender rests.
pub const REST: Duration = Duration::from_millis(20);
/// How long an offender offends.
pub const OFFENCE: Duration = Duration::from_millis(300);
const BURST: Duration = Duration::from_secs(2);
const JUST_BELOW: Duration = Duration::from_millis(9);

static BURST_IS_OVER: AtomicBool = AtomicBool::new(false);
static LOCK: Mutex<()> = Mutex::new(());

/// What the units of `stall` do that do not yield.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offender {
    /// There are none.
    None,
    /// Each blocks its OS thread for 300 ms.
    Blocks,
    /// Each computes for 300 ms.
    Computes,
    /// Each blocks and holds a `std` lock that the others want.
    Holds,
    /// Each blocks for 9 ms and yields, without a rest.
    JustBelow,
    /// A timer fires a waker of each that blocks.
    Waker,
    /// Each cancels a task whose destructor blocks.
    Destructor,
    /// Each sends to tasks of its own for long, without a wait.
    Sends,
    /// Each reads a FIFO that nobody writes; each tick also reads a small file and looks up a name.
    File,
}

/// The parameters of `stall`.
#[derive(Clone, Copy, Debug)]
pub struct Stall {
    /// What the offenders do.
    pub offender: Offender,
    /// How many offenders there are.
    pub offenders: usize,
    /// Whether all offend at once, and once.
    pub is_burst: bool,
    /// For how many seconds to measure.
    pub seconds: u64,
    /// How many processes ping each other, in pairs.
    pub pingers: usize,
}

impl Stall {
    /// The ticker for two seconds without offenders.
    pub fn of_sleep_loop(call: &Call) -> Self {
        Self {
            offender: Offender::None,
            offenders: 0,
            is_burst: false,
            seconds: 2,
            pingers: call.word("beside", &[("nothing", 0), ("pingers", 1_000)]),
        }
    }

    /// Reads the keys.
    pub fn of(call: &Call) -> Self {
        let offender = match call.text("offender") {
            "none" => Offender::None,
            "blocks" => Offender::Blocks,
            "computes" => Offender::Computes,
            "holds" => Offender::Holds,
            "just-below" => Offender::JustBelow,
            "waker" => Offender::Waker,
            "destructor" => Offender::Destructor,
            "sends" => Offender::Sends,
            "file" => Offender::File,
            "subscriber" => bad_usage("This rival reports nothing, so no subscriber is told."),
            _ => bad_usage("The key `offender` is none of those in the README."),
        };
        let is_burst = call.is_yes("burst");
        if is_burst && !matches!(offender, Offender::Blocks | Offender::Computes) {
            bad_usage("A burst blocks or computes.");
        }
        let is_calm = offender == Offender::None;
        let number = |key| usize::try_from(call.number(key, 0)).expect("usize has 64 bits");
        Self {
            offender,
            offenders: if is_calm { 0 } else { number("offenders") },
            is_burst,
            seconds: call.number("seconds", 1),
            pingers: number("pingers"),
        }
    }

    /// How long the ticker runs.
    pub fn length(&self) -> Duration {
        let calm = if self.is_burst { CALM } else { Duration::ZERO };
        calm + Duration::from_secs(self.seconds)
    }

    /// Ends the burst in time, from a thread that nothing can hold up. Called when it begins.
    pub fn end_in_time(&self) {
        let length = Duration::from_secs(self.seconds);
        thread::spawn(move || {
            thread::sleep(length);
            BURST_IS_OVER.store(true, Ordering::Relaxed);
        });
    }
}

impl Offender {
    /// Offends as one of a burst does.
    pub fn burst(self) {
        if BURST_IS_OVER.load(Ordering::Relaxed) {
            return;
        }
        if self == Self::Blocks {
            return thread::sleep(BURST);
        }
        let begin = Instant::now();
        while begin.elapsed() < BURST && !BURST_IS_OVER.load(Ordering::Relaxed) {
            compute_for(Duration::from_millis(1));
        }
    }

    /// Offends once, as one that is not part of a burst. `Waker`, `Destructor`, `Sends` and `File` need the rival's own
    /// means and only block here.
    pub fn offend(self) {
        match self {
            Self::None => {}
            Self::Computes => compute_for(OFFENCE),
            Self::JustBelow => thread::sleep(JUST_BELOW),
            Self::Holds => {
                let _held = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
                thread::sleep(OFFENCE);
            }
            Self::Blocks | Self::Waker | Self::Destructor | Self::Sends | Self::File => {
                thread::sleep(OFFENCE);
            }
        }
    }
}
