//! `callbacks`: how many bytes does a closure that waits for its time take?
//!
//! A process starts n of them in steps and reads its resident memory after each step. The slope of the
//! least-squares line through these points is the cost of one more. kind=once: each would run in an hour and
//! holds two words. kind=loop: each has run a round and sleeps for an hour before the next. owner=process: the
//! process owns them; owner=runtime: nothing does.
//!
//! The program uses no huge pages: 50,000 callbacks fit into two of them, and a line through steps of two
//! megabytes says nothing.

use std::time::Duration;

use weald::process::Inbox;
use weald::process::callback::{self, Owner, When};

use super::host::alone;
use super::memory::resident;
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::programs::slope::{self, sizes};

const HOUR: Duration = Duration::from_secs(3600);
/// How many are started between two yields.
const GIVE_WAY_EVERY: usize = 4096;
/// By this time every callback that has a first round has run it.
const SETTLE: Duration = Duration::from_millis(20);
/// This many come and go before the first point, so that one-time costs are not counted.
const BEFORE: usize = 64;

type StartOne = fn(usize) -> callback::Handle;

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let n = params.count("n")?;
    let start = start_of(params)?;
    rustix::thread::disable_transparent_huge_pages(true)
        .map_err(|error| Error::workload(format!("Cannot turn off huge pages: {error}.")))?;
    alone(params, 0, move |inbox: Inbox<()>| async move {
        drop(inbox);
        let before: Vec<_> = (0..BEFORE).map(start).collect();
        weald::sleep(SETTLE).await;
        for handle in before {
            handle.cancel();
        }
        let mut points = Vec::new();
        let mut started = 0;
        for size in sizes(n) {
            for index in started..size {
                start(index).detach();
                if index % GIVE_WAY_EVERY == GIVE_WAY_EVERY - 1 {
                    weald::yield_now().await;
                }
            }
            started = size;
            weald::sleep(SETTLE).await;
            points.push((size as f64, resident()? as f64));
        }
        let line = slope::line(&points);
        Ok(vec![
            Metric::new("bytes_per_callback", line.slope),
            Metric::new("intercept_bytes", line.intercept),
            Metric::new("r", line.r2.max(0.0).sqrt()),
            Metric::new("r2", line.r2),
        ])
    })
}

fn start_of(params: &Params) -> Result<StartOne, Error> {
    let (kind, owner) = (
        params.text("kind")?,
        params.get("owner").unwrap_or("process"),
    );
    match (kind, owner) {
        ("once", "process") => Ok(once),
        ("once", "runtime") => Ok(once_of_the_runtime),
        ("loop", "process") => Ok(sleeping_loop),
        _ => Err(Error::Usage(format!(
            "kind={kind} is neither once nor loop, or owner={owner} neither process nor, of \
             kind=once, runtime."
        ))),
    }
}

fn once(index: usize) -> callback::Handle {
    let captured = std::hint::black_box([index; 2]);
    callback::after(HOUR, move || _ = std::hint::black_box(captured))
}

fn once_of_the_runtime(index: usize) -> callback::Handle {
    let captured = std::hint::black_box([index; 2]);
    let when = When::At(weald::now() + HOUR);
    callback::once(Owner::runtime(), when, move || {
        _ = std::hint::black_box(captured);
    })
}

fn sleeping_loop(index: usize) -> callback::Handle {
    let body = move || {
        std::hint::black_box(index);
        callback::pause(HOUR)
    };
    callback::repeat(body).start()
}
