//! The part of the monitor's round that checks the detached threads. It starts threads for the
//! [quarantine]. It reports each job that exceeds `stuck_after` on a detached
//! thread, unless the job computes in a fork, and each that does not end although it was asked to. Called by the
//! monitor only, except [`note_announced`].

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use crate::{
    job::{Header, JobRef, name::UnitName},
    report::{self, JustBelow, LateName, NoSpareThread, Retake, StuckRun},
    scheduler::{
        services::{RoomForParts, ThreadsLeft},
        threads::{
            detached_run::{Cause, Overdue, Round, RunningCode},
            held_up,
            job_kind::CurrentWork,
            quarantine,
            serve::{self, NoQuarantineThread},
            suspect_records::record::LongRun,
        },
        workers::{ready, shared::Shared},
    },
};

/// The most threads that one round starts: a thread takes some 30 µs to start, and the monitor has other duties.
const STARTS_PER_ROUND: usize = 64;

/// How long a round checks the jobs that wait in quarantine, at most.
const CHECK: Duration = Duration::from_micros(100);

/// Reports the jobs that exceed the bound on detached threads, and starts threads for the quarantine.
pub(super) fn run(shared: &Arc<Shared>) {
    let now = Instant::now();
    shared
        .detached
        .note_ends_of_forks(|job| is_fork(shared, job));
    let round = shared.detached.check(shared.config.stuck_after);
    let wanted = wanted(shared, &round);
    start_for_quarantine(shared, wanted);
    for overdue in &round.overdue {
        let job = overdue.job.header();
        if is_before_callbacks(job) {
            shared.detached.excuse(&overdue.job);
            continue;
        }
        if is_excused_by_fork(shared, overdue) {
            shared.detached.is_in_fork(&overdue.job);
            if overdue.cause == Cause::Quarantined && overdue.code == RunningCode::Own {
                // It may be half of all the work of its fork, so its end is not awaited.
                shared.suspects.trust(CurrentWork::of(job));
            }
            continue;
        }
        let retake = match overdue.cause {
            Cause::Quarantined => {
                shared.counters.detached.fetch_add(1, Ordering::Relaxed);
                Retake::Quarantined
            }
            Cause::Retaken | Cause::Announced | Cause::Continued => Retake::Retaken,
            Cause::Visits => Retake::OfVisitor,
        };
        match overdue.cause {
            // It runs on its own thread only, so its kind delays no worker.
            Cause::Visits => _ = job.extensions.tell_that_it_takes_long(),
            _ => note_offence(shared, &overdue.job, overdue.counts_in_fork, now),
        }
        let name = LateName::of(job);
        match overdue.code {
            RunningCode::PanicHook => report::panic_hook_runs(name, overdue.held, retake),
            RunningCode::Own => {
                let held_up = held_up::take_names_for(shared, &overdue.job);
                let run = StuckRun {
                    held: overdue.held,
                    retake,
                    killed: overdue.killed,
                    is_fork: is_fork(shared, &overdue.job),
                };
                report::stuck(name, run, held_up);
            }
        }
    }
    for hook in &round.long_hooks {
        report::long_panic_hook(LateName::of(hook.job.header()), hook.held);
    }
    for kill in &round.unended {
        // A shutdown that such a job outlasts names it itself.
        if shared.is_cancelling() {
            break;
        }
        let name = LateName::of(kill.job.header());
        match kill.has_come {
            true => report::hangs_at_end(name, kill.pending),
            false => report::pending_kill(name, kill.pending),
        }
    }
    for job in &round.long {
        note_long_run(shared, job);
    }
    check_suspects(shared, now);
    tell_thieves_of_room(shared, wanted);
}

/// While no thread is free for the quarantine: keeps kinds suspect whose next offender would take one of the threads
/// that are left, and clears those that hold none. In any case clears those whose time is over.
fn check_suspects(shared: &Shared, now: Instant) {
    if room_for_quarantine(shared) == 0 {
        shared
            .suspects
            .prolong(|| shared.detached.unannounced_jobs(), now);
        if room_for_trials(shared) == 0 {
            shared.suspects.prolong_all(now);
        }
        // Without a thread for a worker that is retaken, a job that holds one is not in the list.
        if shared.pool.has_spare_thread(shared) {
            let holders = || shared.detached.jobs();
            let workers = shared.workers.len();
            shared.suspects.clear_unheld(holders, workers, now);
        }
    } else if shared.quarantine.len() == 0 {
        // The pool is no longer full: the next time that it is, a report says so again.
        shared.at_bound.store(false, Ordering::Relaxed);
    }
    shared.suspects.expire(now);
}

/// As [`run`] while there is no memory: an idle thread runs the jobs of the quarantine, and the rest waits.
pub(super) fn run_without_memory(shared: &Arc<Shared>) {
    let is_wanted = shared.quarantine.len() > shared.quarantine.starting();
    if is_wanted && shared.pool.has_idle() {
        // If another took the thread, the next round tries again.
        let _started = serve::start_quarantine(shared);
    }
    let none = RoomForParts {
        queued: 0,
        tried: 0,
        left: ThreadsLeft::None,
    };
    shared.forks.set_room_for_parts(shared, none);
}

/// Whether the job, which was not known to be in a fork when the run was judged, is in one that computes.
fn is_excused_by_fork(shared: &Shared, overdue: &Overdue) -> bool {
    let may_fork = match overdue.cause {
        Cause::Continued | Cause::Visits => true,
        // Its line is suspect because of other parts, which block.
        Cause::Quarantined => overdue.job.header().is_part(),
        Cause::Announced | Cause::Retaken => false,
    };
    may_fork && !overdue.counts_in_fork && is_fork(shared, &overdue.job)
}

/// How many more threads may run quarantined jobs: some threads are left for retaken workers.
fn room_for_quarantine(shared: &Shared) -> usize {
    let left = left_for_workers(shared);
    shared.pool.free(shared).saturating_sub(left)
}

/// Tells the thieves of forks how many parts of suspect lines may wait for a thread: as many as a round starts if no
/// more run meanwhile than in this one, which wants `wanted` threads. The job that has forked a part must not wait for
/// the quarantine, and runs what nobody has taken itself. None if nothing is suspect: the round that first sees a
/// suspect tells what there is room for.
fn tell_thieves_of_room(shared: &Shared, wanted: usize) {
    let starts = match shared.suspects.is_any() {
        true => wanted.min(STARTS_PER_ROUND),
        false => 0,
    };
    let (room, to_be_tried) = (room_for_quarantine(shared), room_for_trials(shared));
    let starts_of = |room: usize| starts.min(room);
    let room = RoomForParts {
        queued: starts_of(room),
        tried: starts_of(to_be_tried),
        left: left_for_relief(shared, starts, room, to_be_tried),
    };
    shared.forks.set_room_for_parts(shared, room);
}

/// How many threads are free for parts for which others wait: none unless the quarantine is full, and may run more.
fn left_for_relief(shared: &Shared, starts: usize, room: usize, to_be_tried: usize) -> ThreadsLeft {
    let quarantine = &shared.quarantine;
    if starts == 0 || room > 0 || quarantine.starting() > 0 || quarantine.is_relieving() {
        return ThreadsLeft::None;
    }
    match (to_be_tried, shared.pool.has_spare_thread(shared)) {
        (1.., _) => ThreadsLeft::Many,
        (0, true) => ThreadsLeft::Last,
        (0, false) => ThreadsLeft::None,
    }
}

/// How many more threads may run jobs that are tried: half of those that are left for workers, too.
fn room_for_trials(shared: &Shared) -> usize {
    let left = left_for_workers(shared);
    shared.pool.free(shared).saturating_sub(left / 2)
}

/// How many more threads may run the first jobs of the quarantine: as many as those that are tried, and at least one
/// that others wait for.
fn room_for_tried(shared: &Shared) -> usize {
    let is_relieving = shared.forks.is_relieving() || shared.quarantine.is_relieving();
    room_for_trials(shared).max(usize::from(is_relieving))
}

/// Whether no thread of the quarantine is one of those that are left for workers.
pub(super) fn is_within_share(shared: &Shared) -> bool {
    shared.pool.free(shared) >= left_for_workers(shared)
}

/// How many spare threads the quarantine leaves.
fn left_for_workers(shared: &Shared) -> usize {
    let spare = shared.config.spare_threads;
    spare - quarantine::share_of_spare_threads(spare)
}

/// How many threads more the quarantine should have, if so many jobs wait. None while as many are busy as there are
/// workers.
fn wanted(shared: &Shared, round: &Round) -> usize {
    match round.busy + shared.quarantine.starting() {
        0 => round.quarantined.max(shared.workers.len()),
        busy => shared.workers.len().saturating_sub(busy),
    }
}

/// Starts threads for the jobs that wait in quarantine, `wanted` at most.
fn start_for_quarantine(shared: &Arc<Shared>, wanted: usize) {
    let waiting = shared.quarantine.len();
    if waiting <= shared.quarantine.starting() {
        return;
    }
    let most = quarantine::share_of_spare_threads(shared.config.spare_threads);
    let room = room_for_quarantine(shared);
    if room == 0 || wanted == 0 {
        let begin = Instant::now();
        let has_time = || begin.elapsed() < CHECK;
        let released = shared.quarantine.take_released(&shared.suspects, has_time);
        ready::inject_all(shared, released);
    }
    if wanted == 0 {
        return;
    }
    let places = match room {
        // Those that start take these first.
        0 => {
            let tried = shared.quarantine.tried();
            let without_thread = tried.saturating_sub(shared.quarantine.starting());
            without_thread.min(room_for_tried(shared))
        }
        room => waiting.min(room),
    };
    let starts = wanted.min(places).min(STARTS_PER_ROUND);
    let mut refusals = (0..starts).filter_map(|_| serve::start_quarantine(shared).err());
    match refusals.next() {
        Some(NoQuarantineThread::Refused(error)) => serve::report_refused_thread(shared, &error),
        None if room > 0 => {}
        Some(NoQuarantineThread::AtBound) | None => {
            serve::report_no_spare_thread(shared, most, NoSpareThread::JobsWait);
        }
    }
}

/// The job has exceeded `stuck_after`. Its description is told, and its kind becomes suspect unless the run is excused
/// ([`is_excused`]). A panic hook counts too, although it is not the job's fault: when one request panics because a
/// service is gone, the others are about to, and each hook would cost a worker the bound.
///
/// `counts_in_fork`: whether a fork is no excuse. It does not excuse a thread that blocks, because a job that waits for
/// the parts of a fork has announced that it does; nor a thread whose worker no spare thread can take; nor one root of
/// a fork too many.
pub(super) fn note_offence(shared: &Shared, job: &JobRef, counts_in_fork: bool, now: Instant) {
    if is_before_callbacks(job.header()) {
        return;
    }
    job.header().extensions.tell_that_it_takes_long();
    let counts = counts_in_fork && has_quarantine(shared);
    if counts || !is_excused(shared, job) {
        shared.suspects.note_offence(job.header(), now);
    }
}

/// The job has announced on a worker that it blocks, and its thread is detached. If such runs hold more than an eighth
/// of the spare threads, this is an offence of the job's kind: otherwise a burst of them would take all of these
/// threads. It is not reported, and the job is not told. Called by the job's thread, before another one gets the
/// worker.
///
/// Without spare threads it is none: nothing is run in quarantine then, so what would wait there waits for ever.
pub(crate) fn note_announced(shared: &Shared, job: &JobRef) {
    if !has_quarantine(shared) {
        return;
    }
    let in_waits = shared.threads_held_in_wait.load(Ordering::Relaxed);
    let most = left_for_workers(shared).saturating_add(in_waits);
    if shared.detached.announced_exceed(most) {
        shared.suspects.note_offence(job.header(), Instant::now());
    }
}

/// The job, which held a worker, begins to hold its thread in a wait. If that is one of more than the quarantine leaves
/// of the spare threads, it is an offence of the job's kind, as in [`note_announced`]: each such wait costs a worker a
/// handoff to a new thread, and what is ready behind a burst of them waits for all of these.
pub(crate) fn note_held(shared: &Shared, job: &JobRef) {
    let held = shared.threads_held_in_wait.load(Ordering::Relaxed);
    if has_quarantine(shared) && held > left_for_workers(shared) {
        shared.suspects.note_offence(job.header(), Instant::now());
    }
}

/// A run of the job's own code has reached half the bound. Several such runs make the job's kind suspect, and are
/// reported.
pub(super) fn note_long_run(shared: &Shared, job: &JobRef) {
    if is_excused(shared, job) || is_before_callbacks(job.header()) {
        return;
    }
    let noted = shared.suspects.note_long_run(job.header(), Instant::now());
    let who = match noted {
        LongRun::Again => JustBelow::Job,
        LongRun::OfKind => JustBelow::Kind,
        LongRun::Noted => return,
    };
    let bound = shared.config.stuck_after;
    // Its next callbacks are, if it runs several.
    let is_moved = job.header().may_be_quarantined() || job.header().is_shared_by_units();
    report::just_below(LateName::of(job.header()), who, bound, is_moved);
}

/// Whether the job is a runner of callbacks and has not begun one yet. Until then it runs only code of Weald, so no
/// user code is to blame: its thread waits for the worker's lock, whose holder waits for a core.
pub(super) fn is_before_callbacks(job: &Header) -> bool {
    job.is_shared_by_units() && UnitName::of_running(job).is_none()
}

/// Whether a long run of the job has no consequence for its kind: the job is part of a fork, or in one; or there are no
/// spare threads for a quarantine.
fn is_excused(shared: &Shared, job: &JobRef) -> bool {
    is_fork(shared, job) || !has_quarantine(shared)
}

fn has_quarantine(shared: &Shared) -> bool {
    shared.config.spare_threads > 0
}

/// Whether the job is part of a fork, or in one.
pub(super) fn is_fork(shared: &Shared, job: &JobRef) -> bool {
    job.header().is_part() || shared.forks.is_forking(job)
}

#[cfg(all(test, not(loom)))]
mod tests;
