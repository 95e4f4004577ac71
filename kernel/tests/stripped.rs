//! A program that was stripped: without the names of functions, a panic hook is still told from a destructor.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    env, fs,
    path::PathBuf,
    process::{self, Command},
    time::Duration,
};

use tools::{Latch, runtime, watch};
use weald_kernel::{DEFAULT_STACK, JoinHandle, Runtime, Spawn, Wait, block_on, sleep};

const CHILD: &str = "WEALD_TEST_STRIPPED";

/// A test runs this as a program of its own, which was stripped. Does nothing in an ordinary run.
#[test]
fn child() {
    let Ok(case) = env::var(CHILD) else {
        return;
    };
    let _watch = watch();
    let own_hook: Box<dyn Fn(&std::panic::PanicHookInfo<'_>) + Send + Sync> = match &*case {
        "a hook that waits" => Box::new(|_| block_on(sleep(Duration::from_millis(250)))),
        _ => Box::new(|_| ()),
    };
    let runtime = runtime(1);
    if case != "the first hook" {
        std::panic::set_hook(own_hook);
    }
    match &*case {
        "a hook that waits" => panic_beside_a_hook(&runtime),
        _ => wait_in_destructors(&runtime),
    }
    println!("ended");
}

fn thread(runtime: &Runtime, code: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    runtime
        .block_on(async { Spawn::new().spawn_fiber(DEFAULT_STACK, code) })
        .unwrap()
}

/// Wakes another thread of its OS thread, and waits for what that one does.
struct WaitsAtDrop {
    wakes: Latch,
    waits: Latch,
}

impl Drop for WaitsAtDrop {
    fn drop(&mut self) {
        assert!(std::thread::panicking());
        self.wakes.open();
        self.waits.clone().wait();
    }
}

fn wait_in_destructors(runtime: &Runtime) {
    let (never, panics): (Latch, [fn(&Latch); 3]) = (
        Latch::default(),
        [
            |_| panic!("on purpose"),
            |_| std::panic::panic_any(1),
            // Cancelled.
            |never| never.clone().wait(),
        ],
    );
    for panics in panics {
        let (woken, ended) = (Latch::default(), Latch::default());
        let waits = WaitsAtDrop {
            wakes: woken.clone(),
            waits: ended.clone(),
        };
        let peer = thread(runtime, move || {
            woken.wait();
            ended.open();
        });
        let never = never.clone();
        let unwinds = thread(runtime, move || {
            sleep(Duration::from_millis(1)).wait();
            let _waits = waits;
            panics(&never);
        });
        runtime.block_on(sleep(Duration::from_millis(20)));
        unwinds.cancel();
        assert!(runtime.block_on(unwinds).is_err());
        runtime.block_on(peer).unwrap();
    }
}

/// The stack of the second one is suspended on the OS thread on which the hook of the first one waits.
fn panic_beside_a_hook(runtime: &Runtime) {
    let later = thread(runtime, || {
        sleep(Duration::from_millis(5)).wait();
        panic!("later");
    });
    let first = thread(runtime, || panic!("first"));
    assert!(runtime.block_on(first).unwrap_err().is_panic());
    assert!(runtime.block_on(later).unwrap_err().is_panic());
}

/// A stripped copy of this program, which is removed in the end.
struct Stripped(PathBuf);

impl Stripped {
    /// None if there is no `strip` for it.
    fn make() -> Option<Stripped> {
        let name = format!("weald-stripped-{}", process::id());
        let stripped = Stripped(env::temp_dir().join(name));
        let made = Command::new("strip")
            .args(["-s", "-o"])
            .args([&stripped.0, &env::current_exe().unwrap()])
            .status();
        match made {
            Ok(status) if status.success() => Some(stripped),
            failed => {
                println!("skipped: `strip` cannot be run, or is for another processor: {failed:?}");
                None
            }
        }
    }

    fn ends(&self, case: &str) {
        let child = Command::new(&self.0)
            .args(["child", "--exact", "--nocapture"])
            .env(CHILD, case)
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&child.stdout);
        let errors = String::from_utf8_lossy(&child.stderr);
        assert!(output.contains("ended"), "{case}: {output}\n{errors}");
        assert!(!errors.contains("looks at the stack"), "{errors}");
    }
}

impl Drop for Stripped {
    fn drop(&mut self) {
        let _removed = fs::remove_file(&self.0);
    }
}

#[test]
fn a_stripped_program_tells_a_hook_from_a_destructor() {
    if let Some(stripped) = Stripped::make() {
        stripped.ends("the first hook");
        stripped.ends("a hook that was set later");
        stripped.ends("a hook that waits");
    }
}
