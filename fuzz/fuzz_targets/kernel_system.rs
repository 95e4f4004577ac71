//! What the system says about a thread and about the cores that a program may use: what is said comes back, and all
//! else is no answer.
//!
//! The files of the kernel are compiled in here, because they are no part of its interface.

#![no_main]
#![allow(dead_code, reason = "the files have more than is tried here")]

use libfuzzer_sys::{
    arbitrary::{self, Arbitrary},
    fuzz_target,
};

#[path = "../../kernel/src/scheduler/workers/config.rs"]
mod config;
#[path = "../../kernel/src/scheduler/threads/thread_times.rs"]
mod thread_times;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    anything: &'a [u8],
    number: u32,
    /// Threads choose their names, which need not be text.
    name: &'a [u8],
    state: u8,
    ran: u64,
    quota: u32,
    period: u32,
}

fuzz_target!(|input: Input| {
    if let Some(ran) = thread_times::parse_ran(input.anything) {
        let said = ran.as_nanos().to_string();
        assert_eq!(thread_times::parse_ran(said.as_bytes()), Some(ran));
    }
    thread_times::parse_is_blocked(input.anything);
    let ran = format!("{} 1 2\n", input.ran);
    let ran = thread_times::parse_ran(ran.as_bytes()).map(|ran| ran.as_nanos());
    assert_eq!(ran, Some(u128::from(input.ran)));

    let state = char::from(b'A' + input.state % 26);
    let begin = format!("{} (", input.number);
    let end = format!(") {state} 1 2 3\n");
    let stat = [begin.as_bytes(), input.name, end.as_bytes()].concat();
    assert_eq!(
        thread_times::parse_is_blocked(&stat),
        Some(state != 'R'),
        "whatever the name is"
    );

    if let Ok(text) = str::from_utf8(input.anything) {
        config::parse_quota(text);
    }
    let cores = config::parse_quota(&format!("{} {}\n", input.quota, input.period));
    let expected = (input.period > 0).then(|| input.quota.div_ceil(input.period) as usize);
    assert_eq!(cores, expected);
    assert_eq!(
        config::parse_quota(&format!("max {}\n", input.period)),
        None
    );
});
