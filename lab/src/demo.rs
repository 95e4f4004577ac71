//! The demo: many processes tick while a unit blocks, one computes, one panics, and two wait for each other.
//!
//! Steps: start the ticking processes; every tenth of a second start the scenes whose time has come and pass on the
//! ticks and what Weald reports; at the end wait for reports that are still on their way; stop the runtime. All of it
//! runs on the calling thread, beside the runtime.

pub mod beside;

use std::sync::Arc;
use std::time::{Duration, Instant};

use weald::process::{self, Inbox};
use weald::sync::Mutex;
use weald::{JoinHandle, Runtime, Spawn};

use crate::error::Error;
use crate::programs::scenes::{SCENES, Scene, Ticks, due, offence};
use crate::reports::{self, Report};
use crate::workload::compute;

/// The pause between two looks at the ticks.
const LOOK: Duration = Duration::from_millis(100);
/// The time in which all processes start.
const START: Duration = Duration::from_millis(300);
/// How long a report may take to arrive after the end, on a machine that is busy with other things.
const REPORTING: Duration = Duration::from_secs(10);
/// How long the runtime may take to stop.
const STOP: Duration = Duration::from_secs(2);

/// How large and how long the demo is.
#[derive(Clone, Copy, Debug)]
pub struct DemoSize {
    /// How many processes tick.
    pub processes: u32,
    /// How long it takes.
    pub length: Duration,
}

/// The ticks of about a tenth of a second.
#[derive(Clone, Copy, Debug)]
pub struct Pulse {
    /// The time since the first tick was due.
    pub at: Duration,
    /// The ticks that came, as a share of those that were due.
    pub percent: f64,
    /// The latest of them.
    pub worst: Duration,
}

/// The ticks of the whole demo.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The ticks that came.
    pub ticks: u64,
    /// The same as a share of those that were due.
    pub percent: f64,
    /// The lateness of the latest one.
    pub worst: Duration,
    /// The scenes that took place, each with whether a report named its units.
    pub named: Vec<(Scene, bool)>,
}

/// What watches the demo, such as a terminal. An error ends the demo.
pub trait Audience {
    /// A tenth of a second has passed.
    fn pulse(&mut self, pulse: Pulse) -> Result<(), Error>;
    /// A scene begins.
    fn scene(&mut self, at: Duration, scene: Scene) -> Result<(), Error>;
    /// Weald reports something; `about` is the scene whose units the sentence names, if it is one's.
    fn told(&mut self, sentence: &str, about: Option<Scene>) -> Result<(), Error>;
    /// Whether to go on, asked every tenth of a second.
    fn goes_on(&self) -> bool;
}

/// The names of the units that a scene consists of.
fn units(scene: Scene) -> &'static [&'static str] {
    match scene {
        Scene::Blocks => &["blocker"],
        Scene::Computes => &["cruncher"],
        Scene::Panics => &["faulty"],
        Scene::Deadlock => &["left", "right"],
    }
}

/// Runs the demo to its end.
pub fn run(size: DemoSize, audience: &mut dyn Audience) -> Result<Outcome, Error> {
    // Before there is a runtime, which would print what nobody listens to.
    let log = reports::listen();
    let room = usize::try_from(size.processes).unwrap_or(usize::MAX);
    let runtime = Runtime::builder()
        .process_limit(room.saturating_add(1 << 16).max(1 << 20))
        .build()
        .map_err(|error| Error::workload(format!("Cannot start the runtime: {error}.")))?;
    let mut stage = Stage {
        size,
        ticks: Arc::new(Ticks::new(Instant::now() + START, size.processes)),
        runtime,
        begun: Vec::new(),
        jobs: Vec::new(),
        told: log.count(),
        worst: Duration::ZERO,
    };
    // The report of the panic says it all; the message of the default hook would come between the lines.
    std::panic::set_hook(Box::new(|_| {}));
    let summary = stage.play(audience);
    drop(std::panic::take_hook());
    let _left_behind = stage.runtime.shutdown(STOP);
    summary
}

/// A demo that is under way.
struct Stage {
    size: DemoSize,
    ticks: Arc<Ticks>,
    runtime: Runtime,
    /// The scenes that have begun, each with whether it was named.
    begun: Vec<(Scene, bool)>,
    /// What must not be detached: its panic or its end would be someone's to observe.
    jobs: Vec<JoinHandle<()>>,
    /// How many reports were seen.
    told: usize,
    worst: Duration,
}

impl Stage {
    fn play(&mut self, audience: &mut dyn Audience) -> Result<Outcome, Error> {
        self.start_processes()?;
        pause(self.ticks.until_first());
        let mut before = (Duration::ZERO, 0);
        while self.ticks.elapsed() < self.size.length && audience.goes_on() {
            pause(LOOK);
            let (at, done) = (self.ticks.elapsed(), self.ticks.done());
            let percent = percent(self.size.processes, at - before.0, done - before.1);
            before = (at, done);
            let worst = self.ticks.take_worst();
            self.worst = self.worst.max(worst);
            audience.pulse(Pulse { at, percent, worst })?;
            self.begin_scenes(audience)?;
            self.pass_on(audience)?;
        }
        let (at, ticks) = (self.ticks.elapsed(), self.ticks.done());
        let percent = percent(self.size.processes, at, ticks);
        self.worst = self.worst.max(self.ticks.take_worst());
        let deadline = Instant::now() + REPORTING;
        let is_silent = |stage: &Self| stage.begun.iter().any(|(_, named)| !named);
        while is_silent(self) && audience.goes_on() && Instant::now() < deadline {
            pause(LOOK);
            self.pass_on(audience)?;
        }
        Ok(Outcome {
            ticks,
            percent,
            worst: self.worst,
            named: self.begun.clone(),
        })
    }

    fn start_processes(&self) -> Result<(), Error> {
        self.runtime.block_on(async {
            for unit in 0..self.size.processes {
                let ticks = Arc::clone(&self.ticks);
                let mut due = ticks.first(unit);
                let ticker = process::spawn(move |_inbox: Inbox<()>| async move {
                    loop {
                        weald::sleep_until(due).await;
                        due = ticks.count(due);
                    }
                });
                let refused = |error| Error::workload(format!("Cannot spawn a process: {error}."));
                let _pid = ticker.map_err(refused)?.into_pid();
            }
            Ok(())
        })
    }

    fn begin_scenes(&mut self, audience: &mut dyn Audience) -> Result<(), Error> {
        let at = self.ticks.elapsed();
        for (share, scene) in SCENES {
            let is_new = !self.begun.iter().any(|(begun, _)| *begun == scene);
            if is_new && at >= self.size.length.mul_f64(share) {
                audience.scene(at, scene)?;
                self.begun.push((scene, false));
                self.begin(scene);
            }
        }
        Ok(())
    }

    fn begin(&mut self, scene: Scene) {
        let length = offence(self.size.length);
        let name = units(scene)[0];
        let jobs = &mut self.jobs;
        self.runtime.block_on(async {
            match scene {
                Scene::Blocks => {
                    jobs.push(Spawn::new().name(name).spawn(async move { pause(length) }))
                }
                Scene::Computes => {
                    let computes = async move { compute(length) };
                    jobs.push(Spawn::new().name(name).spawn(computes));
                }
                // Nothing joins it, so Weald reports the panic.
                Scene::Panics => drop(
                    Spawn::new()
                        .name(name)
                        .spawn(async { panic!("something went wrong") }),
                ),
                Scene::Deadlock => jobs.extend(start_deadlock()),
            }
        });
    }

    /// Passes on what was reported since the last call.
    fn pass_on(&mut self, audience: &mut dyn Audience) -> Result<(), Error> {
        let new: Vec<Report> = reports::listen().after(self.told);
        self.told += new.len();
        for report in &new {
            let about = self.note(&report.message);
            audience.told(&report.message, about)?;
        }
        Ok(())
    }

    /// Notes which scenes a sentence names, and returns the first.
    fn note(&mut self, sentence: &str) -> Option<Scene> {
        let mut about = None;
        for (scene, named) in &mut self.begun {
            let mut units = units(*scene).iter();
            if units.all(|unit| sentence.contains(&format!("`{unit}`"))) {
                *named = true;
                about = about.or(Some(*scene));
            }
        }
        about
    }
}

/// Two jobs: each gets a lock, and then wants the other's.
fn start_deadlock() -> [JoinHandle<()>; 2] {
    let locks = [Arc::new(Mutex::new(())), Arc::new(Mutex::new(()))];
    let [left, right] = [0, 1].map(|own| {
        let (own, other) = (Arc::clone(&locks[own]), Arc::clone(&locks[1 - own]));
        async move {
            let _own = own.lock().await;
            weald::sleep(LOOK).await;
            let _other = other.lock().await;
        }
    });
    let [name, other] = [units(Scene::Deadlock)[0], units(Scene::Deadlock)[1]];
    [
        Spawn::new().name(name).spawn(left),
        Spawn::new().name(other).spawn(right),
    ]
}

/// How many of the ticks that are due in this time have come.
fn percent(units: u32, elapsed: Duration, done: u64) -> f64 {
    (100.0 * done as f64 / due(units, elapsed).max(1.0)).min(100.0)
}

#[expect(
    clippy::disallowed_methods,
    reason = "it paces the display, and shows code that blocks a worker"
)]
fn pause(length: Duration) {
    std::thread::sleep(length);
}
