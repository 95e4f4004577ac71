//! `select`: one process receives from whichever of two or eight channels has a message.
//!
//! Each channel has a sender of its own. The selections of two and of eight are written out, as users write them.

use std::hint::black_box;

use weald::process::Inbox;
use weald::sync::channel::{Receiver, Sender};
use weald::sync::select;

use super::host::alone;
use super::kind::{Kind, send_all};
use super::team::{Team, ns_per};
use super::work::Work;
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

/// The reason why a receive cannot fail.
const KEPT: &str = "a sender is kept until the end";

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (branches, messages) = (params.count("branches")?, params.count("messages")?);
    let (kind, work) = (Kind::read(params)?, Work::read(params)?);
    if branches != 2 && branches != 8 {
        let sentence = format!("branches={branches} is neither 2 nor 8.");
        return Err(Error::Usage(sentence));
    }
    alone(params, branches + 1, move |inbox| {
        measure(inbox, (branches, messages), (kind, work))
    })
}

async fn measure(
    inbox: Inbox<()>,
    (branches, messages): (usize, usize),
    (kind, work): (Kind, Work),
) -> Result<Vec<Metric>, Error> {
    let (senders, receivers): (Vec<Sender<u64>>, Vec<Receiver<u64>>) =
        (0..branches).map(|_| kind.make()).unzip();
    let total = branches * messages;
    let mut team = Team::of(branches + 1, inbox);
    match <[Receiver<u64>; 2]>::try_from(receivers) {
        Ok(two) => team.add(from_two(two, total))?,
        Err(receivers) => {
            let eight = <[Receiver<u64>; 8]>::try_from(receivers);
            let eight = eight.unwrap_or_else(|_| unreachable!("there are two or eight channels"));
            team.add(from_eight(eight, total))?;
        }
    }
    for sender in &senders {
        team.add(send_all(sender.clone(), messages, work))?;
    }
    let elapsed = team.run().await;
    drop(senders);
    Ok(vec![Metric::new("ns_per_message", ns_per(elapsed, total))])
}

async fn from_two([a, b]: [Receiver<u64>; 2], total: usize) {
    for _ in 0..total {
        let value = select! {
            value = a.receive() => { value }
            value = b.receive() => { value }
        };
        black_box(value.expect(KEPT));
    }
}

async fn from_eight([a, b, c, d, e, f, g, h]: [Receiver<u64>; 8], total: usize) {
    for _ in 0..total {
        let value = select! {
            value = a.receive() => { value }
            value = b.receive() => { value }
            value = c.receive() => { value }
            value = d.receive() => { value }
            value = e.receive() => { value }
            value = f.receive() => { value }
            value = g.receive() => { value }
            value = h.receive() => { value }
        };
        black_box(value.expect(KEPT));
    }
}
