//! `demo`: tasks tick while units block, compute, panic and deadlock. A thread outside the runtime prints, every tenth
//! of a second, `AT_MS TICKS WORST_MS`: the time, the ticks so far, and the greatest lateness since the line before.

use std::io::Write;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use common::programs::scenes::{SCENES, Scene, Ticks, offence};
use common::{Call, bad_usage, compute_for};
use tokio::sync::Mutex;
use tokio::time::sleep;

const LOOK: Duration = Duration::from_millis(100);
/// The time in which all tasks start.
const START: Duration = Duration::from_millis(300);

pub(crate) async fn run(call: &Call) {
    let processes = u32::try_from(call.count("processes"))
        .unwrap_or_else(|_| bad_usage("There are too many processes."));
    let length = Duration::from_secs(call.number("seconds", 1));
    std::panic::set_hook(Box::new(|_| {}));
    let ticks = Arc::new(Ticks::new(Instant::now() + START, processes));
    for unit in 0..processes {
        let ticks = Arc::clone(&ticks);
        tokio::spawn(async move {
            let mut due = ticks.first(unit);
            loop {
                tokio::time::sleep_until(due.into()).await;
                due = ticks.count(due);
            }
        });
    }
    // Both on threads of their own: nothing in the runtime may come in time.
    let runtime = tokio::runtime::Handle::current();
    let stage = Arc::clone(&ticks);
    thread::spawn(move || {
        thread::sleep(stage.until_first());
        for (share, scene) in SCENES {
            thread::sleep(length.mul_f64(share).saturating_sub(stage.elapsed()));
            runtime.block_on(begin(scene, length));
        }
    });
    thread::spawn(move || print(&ticks, length));
    std::future::pending::<()>().await;
}

fn print(ticks: &Ticks, length: Duration) -> ! {
    thread::sleep(ticks.until_first());
    while ticks.elapsed() < length {
        thread::sleep(LOOK);
        let at = ticks.elapsed().as_secs_f64() * 1e3;
        let worst = ticks.take_worst().as_secs_f64() * 1e3;
        let printed = writeln!(std::io::stdout(), "{at:.3} {} {worst:.3}", ticks.done());
        if printed.is_err() {
            break;
        }
    }
    std::process::exit(0)
}

async fn begin(scene: Scene, length: Duration) {
    let offence = offence(length);
    match scene {
        Scene::Blocks => drop(tokio::spawn(async move { thread::sleep(offence) })),
        Scene::Computes => drop(tokio::spawn(async move { compute_for(offence) })),
        Scene::Panics => drop(tokio::spawn(async { panic!("something went wrong") })),
        Scene::Deadlock => {
            let locks = [Arc::new(Mutex::new(())), Arc::new(Mutex::new(()))];
            for own in [0, 1] {
                let (own, other) = (Arc::clone(&locks[own]), Arc::clone(&locks[1 - own]));
                tokio::spawn(async move {
                    let _own = own.lock().await;
                    sleep(LOOK).await;
                    let _other = other.lock().await;
                });
            }
        }
    }
}
