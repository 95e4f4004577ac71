//! What is decided in states made by hand.

use std::sync::Arc;

use weald_forest::CommitId;

use super::*;
use crate::body::Share;
use crate::core::{Core, Work};
use crate::open::open;
use crate::settings::Settings;
use crate::simulated::SimulatedDisk;

fn append(core: &Core, id: u128, len: usize) {
    let put = |out: &mut Vec<u8>| out.resize(out.len() + len, 7);
    let id = CommitId(id);
    let position = core.state().log.put_short((len, Share::Most), id, put);
    assert!(position.is_some());
}

/// Other writers wait behind the leader, and ask nobody.
#[test]
fn a_batch_whose_leader_does_not_write_is_not_put_off() {
    let silence = Duration::from_secs(1000);
    let settings = Settings::new().segment(1 << 20).by_hand();
    let core = open(Arc::new(SimulatedDisk::new()), settings).unwrap();
    while core.work(Work::Prepare) || core.work(Work::Write) || core.work(Work::Sync) {}
    let put = |out: &mut Vec<u8>| out.resize(out.len() + 100, 7);
    let taken = core
        .state()
        .log
        .put_short((100, Share::Most), CommitId(1), put);
    let mut state = core.state();
    state.is_syncing = true;
    let step = state.next(silence);
    assert!(
        !matches!(step, NextStep::Write(..)),
        "it waits for the sync"
    );
    state.lead(taken.unwrap());
    state
        .leading
        .set_since(Instant::now() - Duration::from_secs(1));
    assert!(matches!(state.next(silence), NextStep::Write(..)));
    drop(state);
}

#[test]
fn after_a_batch_with_much_others_may_join_the_next_one() {
    let silence = Duration::from_secs(1000);
    let settings = Settings::new().segment(1 << 20).by_hand();
    let core = open(Arc::new(SimulatedDisk::new()), settings).unwrap();
    while core.work(Work::Prepare) || core.work(Work::Write) || core.work(Work::Sync) {}
    append(&core, 1, GATHERED);
    let step = core.state().next(silence);
    assert!(matches!(step, NextStep::Write(..)), "there were no others");
    core.carry_out(step);
    append(&core, 2, 100);
    assert!(matches!(core.state().next(silence), NextStep::Gather));
    // Meanwhile nobody else writes, written bytes can be synced, and more records come.
    assert!(!core.work(Work::Write));
    assert!(core.work(Work::Sync));
    append(&core, 3, 100);
    let step = core.state().end_gathering().unwrap();
    let all = core.state().log.cursor;
    assert!(matches!(&step, NextStep::Write(batch, upto) if *upto == all && batch.bytes > 200));
    core.carry_out(step);
    assert_eq!(core.state().log.written, all);
    // That was little.
    append(&core, 4, 100);
    assert!(matches!(core.state().next(silence), NextStep::Write(..)));
}

#[test]
fn nobody_is_waited_for_at_the_end_or_after_a_failure() {
    let silence = Duration::from_secs(1000);
    let settings = Settings::new().segment(1 << 20).by_hand();
    let core = open(Arc::new(SimulatedDisk::new()), settings).unwrap();
    append(&core, 1, GATHERED);
    core.work(Work::Write);
    append(&core, 2, 100);
    let mut state = core.state();
    assert!(matches!(state.next(silence), NextStep::Gather));
    state.failed = Some(AppendError::Poisoned);
    assert!(state.end_gathering().is_none() && !state.is_writing);
    (state.failed, state.is_closing) = (None, true);
    assert!(matches!(state.next(silence), NextStep::Write(..)));
}

#[test]
fn at_the_end_a_thread_waits_for_a_preparation_whose_end_may_accept_records() {
    let silence = Duration::from_secs(1000);
    let core = open(Arc::new(SimulatedDisk::new()), Settings::new().by_hand()).unwrap();
    let mut state = core.state();
    (state.is_closing, state.is_preparing) = (true, true);
    drop(state);
    while core.work(Work::Write) || core.work(Work::Sync) || core.work(Work::Mark) {}
    let mut state = core.state();
    assert!(matches!(state.next(silence), NextStep::Rest(None)));
    state.is_preparing = false;
    assert!(matches!(state.next(silence), NextStep::Stop));
}

#[test]
fn what_is_only_to_be_durable_waits_for_the_sync_before_and_whatever_is_wanted_sooner_does_not() {
    let silence = Duration::from_secs(1000);
    let settings = Settings::new().segment(1 << 20).by_hand();
    let core = open(Arc::new(SimulatedDisk::new()), settings).unwrap();
    append(&core, 1, 100);
    core.work(Work::Write);
    let mut state = core.state();
    state.wanted = state.log.cursor.position();
    let sync = state.next(silence);
    assert!(matches!(sync, NextStep::Sync(..)));
    drop(state);
    append(&core, 2, 100);
    let mut state = core.state();
    state.wanted = state.log.cursor.position();
    assert!(matches!(state.next(silence), NextStep::Rest(None)) && !state.must_write());
    // Somebody waits until it is buffered.
    let all = state.log.cursor.position();
    state.leading.ask_for(all);
    assert!(state.must_write() && matches!(state.next(silence), NextStep::Write(..)));
}

#[test]
fn a_thread_awaits_the_writers_that_the_last_sync_has_woken_and_writes_when_they_have_come() {
    let silence = Duration::from_secs(1000);
    let settings = Settings::new().segment(1 << 20).by_hand();
    let core = open(Arc::new(SimulatedDisk::new()), settings).unwrap();
    while core.work(Work::Prepare) || core.work(Work::Write) || core.work(Work::Sync) {}
    let mut state = core.state();
    let known = state.log.cursor.position();
    (0..3).for_each(|_| state.regroup.has_come(known));
    // So the wait is longer than the test.
    let later = Instant::now() + Duration::from_secs(3600);
    state.regroup.begin_sync(later);
    let ended = later + Duration::from_millis(1);
    state.regroup.end_sync(ended, known);
    drop(state);
    append(&core, 1, 100);
    let mut state = core.state();
    let all = state.log.cursor.position();
    state.wanted = all;
    state.regroup.has_come(all);
    assert!(state.wants_await() && !state.must_write());
    let step = state.next(silence);
    assert!(matches!(step, NextStep::Await(left) if left > Duration::from_secs(1000)));
    // One thread is enough for that.
    state.regroup.is_watched = true;
    assert!(!state.wants_await() && !matches!(state.next(silence), NextStep::Await(_)));
    state.regroup.is_watched = false;
    state.regroup.has_come(all);
    assert!(matches!(state.next(silence), NextStep::Await(_)));
    state.regroup.has_come(all);
    assert!(state.must_write() && matches!(state.next(silence), NextStep::Write(..)));
}

#[test]
fn a_full_segment_is_synced_though_nobody_waits() {
    let settings = Settings::new().segment(2048).by_hand();
    let core = open(Arc::new(SimulatedDisk::new()), settings).unwrap();
    for number in 0..40 {
        core.work(Work::Prepare);
        let before = core.state().log.cursor.segment;
        let put = |out: &mut Vec<u8>| out.extend_from_slice(&[7; 300]);
        let id = CommitId(number);
        assert!(
            core.state()
                .log
                .put_short((300, Share::Most), id, put)
                .is_some()
        );
        core.work(Work::Write);
        let is_full = core.state().log.cursor.segment != before;
        assert_eq!(core.state().may_sync(), is_full, "record {number}");
        if is_full {
            core.work(Work::Sync);
        }
    }
    assert!(core.state().log.cursor.segment.index > 3);
}

#[test]
fn when_much_was_written_a_sync_is_due_though_nobody_waits() {
    let settings = Settings::new().segment(1 << 20).by_hand();
    let core = open(Arc::new(SimulatedDisk::new()), settings).unwrap();
    while core.work(Work::Prepare) || core.work(Work::Write) || core.work(Work::Sync) {}
    for number in 1..=8 {
        let put = |out: &mut Vec<u8>| out.extend_from_slice(&[7; 64 << 10]);
        let id = CommitId(number);
        let put = core.state().log.put_short((64 << 10, Share::Most), id, put);
        assert!(put.is_some());
        core.work(Work::Write);
        let is_much = number % 4 == 0;
        assert_eq!(core.state().may_sync(), is_much, "record {number}");
        if is_much {
            core.work(Work::Sync);
        }
    }
}
