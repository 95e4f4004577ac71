//! `channel`: senders pass integers to one receiver through one channel.

use std::hint::black_box;

use weald::process::Inbox;

use super::host::alone;
use super::kind::{Kind, send_all};
use super::team::{Team, ns_per};
use super::work::Work;
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (senders, messages) = (params.count("senders")?, params.count("messages")?);
    let (kind, work) = (Kind::read(params)?, Work::read(params)?);
    alone(params, senders + 1, move |inbox| {
        measure(inbox, (senders, messages), (kind, work))
    })
}

async fn measure(
    inbox: Inbox<()>,
    (senders, messages): (usize, usize),
    (kind, work): (Kind, Work),
) -> Result<Vec<Metric>, Error> {
    let (sender, receiver) = kind.make();
    let total = senders * messages;
    let mut team = Team::of(senders + 1, inbox);
    team.add(async move {
        for _ in 0..total {
            let value = receiver.receive().await;
            black_box(value.expect("a sender is kept until the end"));
        }
    })?;
    for _ in 0..senders {
        team.add(send_all(sender.clone(), messages, work))?;
    }
    let elapsed = team.run().await;
    drop(sender);
    Ok(vec![Metric::new("ns_per_message", ns_per(elapsed, total))])
}
