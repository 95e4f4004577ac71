//! `channel`: senders and one receiver of integers.

use std::hint::black_box;

use common::{per, print_metrics, total_messages};

use crate::ends::{Put, Take};
use crate::team::Team;

pub(crate) fn run<P: Put, T: Take>(ends: (P, T), senders: usize, messages: usize) -> ! {
    let (sender, receiver) = ends;
    let mut team = Team::of(senders + 1);
    team.add(move || {
        for _ in 0..senders * messages {
            black_box(receiver.take());
        }
    });
    for _ in 0..senders {
        let sender = sender.clone();
        team.add(move || {
            for value in 0..messages as u64 {
                sender.put(value);
            }
        });
    }
    let elapsed = team.run();
    print_metrics(&[(
        "ns_per_message",
        per(elapsed, total_messages(senders, messages)),
    )])
}
