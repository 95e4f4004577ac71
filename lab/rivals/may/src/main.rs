//! The rival may: processes are stackful coroutines, mailboxes are its unbounded mpsc channels.
//!
//! Invariants: the measured work runs in a coroutine. If the kernel's limit of memory maps does not allow
//! the number of coroutines, the program says so and ends before it starts the first one, because may
//! itself would abort.

mod gate;
mod joins;
mod mailbox;
mod ring;
mod spawn;
mod team;
mod threading;
mod traffic;
mod waiting;

use common::{Call, Payload, Workload, fail, locked_versions};
use may::go;

/// Each coroutine takes two memory maps (a stack and its guard page); this many are left for
/// everything else.
const SPARE_MAPS: usize = 2000;

fn main() {
    let call = Call::from_env(&locked_versions(&["may"]));
    may::config().set_workers(call.workers);
    if let Workload::Forking(forking) = call.workload {
        joins::run(forking, call.workers);
    }
    if go!(move || run(call)).join().is_err() {
        fail("The measured coroutine panicked: see the message above.");
    }
}

fn run(call: Call) {
    match call.workload {
        Workload::Spawn { n } => {
            check_map_limit(n);
            spawn::run(n);
        }
        Workload::Ring { n, m, tokens } => {
            check_map_limit(n);
            ring::run(n, m, tokens);
        }
        Workload::Mailbox {
            k,
            bytes,
            payload: Payload::Shared,
        } => {
            let text: &'static str = "x".repeat(bytes).leak();
            mailbox::run(k, || text);
        }
        Workload::Mailbox {
            k,
            bytes,
            payload: Payload::Fresh,
        } => {
            let text = "x".repeat(bytes);
            mailbox::run(k, || Box::<str>::from(text.as_str()));
        }
        Workload::ManyToMany {
            processes,
            messages,
        } => {
            check_map_limit(processes);
            traffic::many_to_many(processes, messages);
        }
        Workload::FanIn { senders, messages } => {
            check_map_limit(senders);
            traffic::fan_in(senders, messages);
        }
        Workload::PingPong { rounds } => traffic::ping_pong(rounds),
        Workload::Waiting(waiting) => waiting::run(waiting),
        Workload::Thread(threading) => threading::run(threading),
        Workload::Stall(_)
        | Workload::BurstSend { .. }
        | Workload::Demo { .. }
        | Workload::Handoff { .. }
        | Workload::Sleeping(_)
        | Workload::Processes(_)
        | Workload::Forking(_)
        | Workload::Items { .. } => {
            fail("The rival may has no program for this workload: leave it out.")
        }
    }
}

fn check_map_limit(coroutines: usize) {
    let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok();
    let Some(limit) = limit.and_then(|limit| limit.trim().parse::<usize>().ok()) else {
        fail("/proc/sys/vm/max_map_count cannot be read: run this on Linux with /proc mounted.");
    };
    let most = limit.saturating_sub(SPARE_MAPS) / 2;
    if coroutines > most {
        fail(&format!(
            "The kernel's vm.max_map_count of {limit} allows about {most} coroutines: \
             raise it, or give a number of at most {most}."
        ));
    }
}
