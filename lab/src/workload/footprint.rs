//! `footprint`: how many bytes does an unused lock or channel take?
//!
//! The figure is the growth of resident memory over n of them, so it includes the allocator's overhead. A
//! channel is counted with both of its ends; a bounded one has room for one integer.

use std::hint::black_box;

use weald::process::Inbox;
use weald::sync::Mutex;

use super::host::alone;
use super::kind::Kind;
use super::memory::{growth_per, resident};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let n = params.count("n")?;
    let kind = match params.text("what")? {
        "mutex" => return measured(params, n, || Mutex::new(())),
        "bounded" => Kind::Bounded(1),
        "unbounded" => Kind::Unbounded,
        "rendezvous" => Kind::Rendezvous,
        other => {
            return Err(Error::Usage(format!(
                "what={other} is neither mutex, bounded, unbounded nor rendezvous."
            )));
        }
    };
    measured(params, n, move || kind.make())
}

fn measured<T: Send + 'static>(
    params: &Params,
    n: usize,
    make: impl Fn() -> T + Send + 'static,
) -> Result<Vec<Metric>, Error> {
    alone(params, 0, move |inbox: Inbox<()>| async move {
        drop(inbox);
        let mut things = Vec::with_capacity(n);
        let before = resident()?;
        for _ in 0..n {
            // Hidden from the compiler, or it would take zeroed pages that nothing has touched.
            things.push(black_box(make()));
        }
        let bytes = growth_per(before, resident()?, n);
        drop(black_box(things));
        Ok(vec![Metric::new("bytes_per_object", bytes)])
    })
}
