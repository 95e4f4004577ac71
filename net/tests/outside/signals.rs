//! Signals are events. The test runs in a child process.

use std::{
    env,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use weald_net::signal;
use weald_sync::select;

use crate::tools::watch;

const CHILD: &str = "WEALD_SIGNALS";

#[test]
fn interrupt_and_terminate_are_events() {
    let _watch = watch();
    if env::var_os(CHILD).is_some() {
        return child();
    }
    let mut program = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "outside::signals::interrupt_and_terminate_are_events",
            "--nocapture",
        ])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = Pid::from_child(&program);
    let lines = BufReader::new(program.stdout.take().unwrap()).lines();
    for line in lines {
        match line.unwrap().as_str() {
            "waits for an interrupt" => kill_process(pid, Signal::INT).unwrap(),
            "waits for the end" => kill_process(pid, Signal::TERM).unwrap(),
            _ => {}
        }
    }
    assert!(program.wait().unwrap().success());
}

fn child() {
    crate::tools::runtime(2).block_on(async {
        let mut interrupt = signal::interrupt().unwrap();
        let mut terminate = signal::terminate().unwrap();
        println!("\nwaits for an interrupt");
        select! {
            came = interrupt.came() => came.unwrap(),
            _ = terminate.came() => panic!("no SIGTERM was sent yet"),
        }
        println!("waits for the end");
        select! {
            _ = interrupt.came() => panic!("only one SIGINT was sent"),
            came = terminate.came() => came.unwrap(),
        }
    });
}
