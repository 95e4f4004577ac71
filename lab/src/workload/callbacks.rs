//! `callbacks`: how many bytes does a closure take that waits for its time?
//!
//! A process starts n of them in steps and reads its resident memory after each; the line of least squares
//! through these points says what one more takes. kind=once: each would run in an hour and holds two words.
//! kind=loop: each has run a round and sleeps for an hour between two.

use std::time::Duration;

use weald::process::{Inbox, callback};

use super::host::alone;
use super::memory::resident;
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::programs::slope::{self, sizes};

const HOUR: Duration = Duration::from_secs(3600);
/// How many are started between two yields.
const GIVE_WAY_EVERY: usize = 4096;

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let n = params.count("n")?;
    let start: fn(usize) = match params.text("kind")? {
        "once" => once,
        "loop" => sleeping_loop,
        other => {
            return Err(Error::Usage(format!(
                "kind={other} is neither once nor loop."
            )));
        }
    };
    alone(params, 0, move |inbox: Inbox<()>| async move {
        drop(inbox);
        let mut points = Vec::new();
        let mut started = 0;
        for size in sizes(n) {
            for index in started..size {
                start(index);
                if index % GIVE_WAY_EVERY == GIVE_WAY_EVERY - 1 {
                    weald::yield_now().await;
                }
            }
            started = size;
            // Loops take their first round.
            weald::sleep(Duration::from_millis(20)).await;
            points.push((size as f64, resident()? as f64));
        }
        let line = slope::line(&points);
        Ok(vec![
            Metric::new("bytes_per_callback", line.slope),
            Metric::new("intercept_bytes", line.intercept),
            Metric::new("r2", line.r2),
        ])
    })
}

fn once(index: usize) {
    let captured = std::hint::black_box([index; 2]);
    callback::after(HOUR, move || _ = std::hint::black_box(captured)).detach();
}

fn sleeping_loop(index: usize) {
    let body = move || {
        std::hint::black_box(index);
        callback::pause(HOUR)
    };
    callback::repeat(body).start().detach();
}
