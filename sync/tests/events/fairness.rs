//! A branch that is always ready starves no other.

use weald_sync::{Event, Wait, always, channel, choose, never};

const SYNCS: u32 = 8_000;

/// How often each of the first `N` numbers is chosen.
fn counts<const N: usize>(mut sync: impl FnMut() -> usize) -> [u32; N] {
    let mut counts = [0; N];
    for _ in 0..SYNCS {
        counts[sync()] += 1;
    }
    counts
}

/// Each has a chance of at least one in `bases`. Two thirds of that is many standard deviations away.
fn assert_fair(counts: &[u32], bases: u32) {
    let least = SYNCS / bases * 2 / 3;
    assert!(counts.iter().all(|count| *count >= least), "{counts:?}");
}

#[test]
fn two_that_are_always_ready() {
    assert_fair(&counts::<2>(|| choose((always(0), always(1))).wait()), 2);
    assert_fair(
        &counts::<2>(|| choose(vec![always(0), always(1)]).wait()),
        2,
    );
}

#[test]
fn a_full_channel_and_what_is_always_ready() {
    let (sender, receiver) = channel::unbounded();
    let counts = counts::<3>(|| {
        if receiver.is_empty() {
            sender.try_send(2).unwrap();
        }
        let receive = receiver
            .receive()
            .wrap(|received: Result<usize, _>| received.unwrap());
        choose((always(0), always(1), receive)).wait()
    });
    assert_fair(&counts, 3);
}

#[test]
fn an_event_behind_many_others() {
    let counts = counts::<2>(|| {
        let nothing = || never();
        choose((
            always(0),
            choose([nothing(), nothing(), nothing()]),
            always(1),
        ))
        .wait()
    });
    assert_fair(&counts, 2);
    let counts = self::counts::<8>(|| choose([0, 1, 2, 3, 4, 5, 6, 7].map(always)).wait());
    assert_fair(&counts, 8);
}

#[test]
fn waiting_neighbours_do_not_take_the_chance_of_others() {
    // Two of eight are ready, side by side: the second is chosen only if the sync starts just there.
    let silent: Vec<_> = (0..6).map(|_| channel::rendezvous::<usize>()).collect();
    let counts = counts::<2>(|| {
        let silent = silent.iter().map(|(_, receiver)| {
            let receive = receiver.receive();
            receive.wrap(|received: Result<usize, _>| received.unwrap())
        });
        choose((always(0), always(1), choose(silent.collect::<Vec<_>>()))).wait()
    });
    assert_fair(&counts, 8);
}

#[test]
fn nested_choices_are_as_fair_as_flat_ones() {
    let counts = counts::<5>(|| {
        choose((
            choose((always(0), choose((always(1), always(2))))),
            always(3).boxed(),
            choose(vec![always(4)]),
        ))
        .wait()
    });
    assert_fair(&counts, 5);
}
