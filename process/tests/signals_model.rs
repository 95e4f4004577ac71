//! Signals in random order against a naive model: a few processes link, unlink, monitor, demonitor, send, trap exits
//! and end each other. On the test runtime every command is carried out before the next one, so the model knows all
//! mailboxes; on workers the commands race, and what must hold for every pair is checked.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex},
};

use tools::{Random, for_seeds, runtime};
use weald_kernel::{Runtime, yield_now};
use weald_process::{
    self as process, Down, Exit, ExitReason, Inbox, MonitorRef, Pid, ProcessId, link, unlink,
};

/// How many processes there are.
const PROCESSES: usize = 5;
/// How many commands a run has.
const COMMANDS: usize = 60;

#[derive(Debug)]
enum Message {
    Do(Command),
    Text(usize, u32),
    Exit(Exit),
    Down(Down),
}

#[derive(Clone, Copy, Debug)]
enum Command {
    Link(usize),
    Unlink(usize),
    Monitor(usize),
    /// Ends the oldest monitor.
    Demonitor,
    Trap(bool),
    Send(usize, u32),
    Exit(usize, Reason),
    Kill(usize),
    Return,
    ExitSelf(Reason),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Normal,
    Shutdown,
    Killed,
    NoProcess,
    Custom(u32),
}

impl Reason {
    fn to_exit(self) -> ExitReason {
        match self {
            Reason::Normal => ExitReason::Normal,
            Reason::Shutdown => ExitReason::Shutdown,
            Reason::Killed => ExitReason::Killed,
            Reason::NoProcess => ExitReason::NoProcess,
            Reason::Custom(n) => ExitReason::custom(n),
        }
    }

    fn of(reason: &ExitReason) -> Reason {
        match reason {
            ExitReason::Normal => Reason::Normal,
            ExitReason::Shutdown => Reason::Shutdown,
            ExitReason::Killed => Reason::Killed,
            ExitReason::NoProcess => Reason::NoProcess,
            ExitReason::Custom(custom) => Reason::Custom(*custom.downcast_ref().unwrap()),
            other => panic!("no reason of this test: {other}"),
        }
    }
}

/// What a process has received, apart from commands.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Text(usize, u32),
    Exit(usize, Reason),
    Down(usize, Reason),
}

fn command(random: &mut Random, number: u32) -> Command {
    let other = random.below(PROCESSES);
    let reason = match random.below(4) {
        0 => Reason::Normal,
        1 => Reason::Shutdown,
        _ => Reason::Custom(number),
    };
    match random.below(24) {
        0..5 => Command::Link(other),
        5..7 => Command::Unlink(other),
        7..11 => Command::Monitor(other),
        11 => Command::Demonitor,
        12..15 => Command::Trap(random.below(3) > 0),
        15..20 => Command::Send(other, number),
        20..22 => Command::Exit(other, reason),
        22 => match random.below(3) {
            0 => Command::Return,
            1 => Command::ExitSelf(reason),
            _ => Command::Kill(other),
        },
        _ => Command::Exit(other, Reason::Normal),
    }
}

/// The processes of a run, as they see each other, and what they have seen.
#[derive(Default)]
struct World {
    pids: Vec<Pid<Message>>,
    seen: Vec<Vec<Seen>>,
}

type Shared = Arc<Mutex<World>>;

async fn live(own: usize, mut inbox: Inbox<Message>, world: Shared) {
    let mut monitors = VecDeque::new();
    loop {
        match inbox.receive().await {
            Message::Do(Command::Return) => return,
            Message::Do(command) => obey(command, &mut inbox, &mut monitors, (own, &world)),
            message => note(message, own, &mut monitors, &world),
        }
    }
}

fn note(message: Message, own: usize, monitors: &mut Monitors, world: &Shared) {
    let mut world = world.lock().unwrap();
    let index = |world: &World, id: Option<ProcessId>| {
        let place = world.pids.iter().position(|pid| Some(pid.id()) == id);
        place.unwrap_or(usize::MAX)
    };
    let seen = match message {
        Message::Text(from, n) => Seen::Text(from, n),
        Message::Exit(exit) => Seen::Exit(index(&world, exit.from), Reason::of(&exit.reason)),
        Message::Down(down) => {
            monitors.retain(|(number, _)| *number != down.monitor);
            Seen::Down(index(&world, down.process), Reason::of(&down.reason))
        }
        Message::Do(_) => unreachable!("it was obeyed"),
    };
    world.seen[own].push(seen);
}

/// The oldest first.
type Monitors = VecDeque<(MonitorRef, usize)>;

fn obey(
    command: Command,
    inbox: &mut Inbox<Message>,
    monitors: &mut Monitors,
    (own, world): (usize, &Shared),
) {
    let pid = |n: usize| world.lock().unwrap().pids[n].clone();
    match command {
        Command::Link(n) => link(&pid(n)),
        Command::Unlink(n) => unlink(&pid(n)),
        Command::Monitor(n) => monitors.push_back((inbox.monitor(&pid(n), Message::Down), n)),
        Command::Demonitor => {
            if let Some((monitor, _)) = monitors.pop_front() {
                inbox.demonitor(monitor);
                let ours =
                    |m: &Message| matches!(m, Message::Down(down) if down.monitor == monitor);
                let _flushed = inbox.take_if(ours);
            }
        }
        Command::Trap(true) => inbox.trap_exits(Message::Exit),
        Command::Trap(false) => inbox.untrap_exits(),
        Command::Send(n, text) => pid(n).send(Message::Text(own, text)),
        Command::Exit(n, reason) => pid(n).exit(&reason.to_exit()),
        Command::Kill(n) => pid(n).kill(),
        Command::ExitSelf(reason) => process::exit(reason.to_exit()),
        Command::Return => unreachable!("`live` returns"),
    }
}

/// The naive model: all processes at once, one command at a time.
#[derive(Default)]
struct Model {
    ended: BTreeMap<usize, Reason>,
    traps: BTreeSet<usize>,
    links: BTreeSet<(usize, usize)>,
    /// Watcher and target, in the order of their creation.
    monitors: Vec<(usize, usize)>,
    seen: Vec<Vec<Seen>>,
}

impl Model {
    fn is_alive(&self, n: usize) -> bool {
        !self.ended.contains_key(&n)
    }

    fn obey(&mut self, own: usize, command: Command) {
        if !self.is_alive(own) {
            return;
        }
        match command {
            Command::Link(n) if n == own => {}
            Command::Link(n) if self.is_alive(n) => {
                self.links.insert((own.min(n), own.max(n)));
            }
            Command::Link(n) => self.exit(n, own, Reason::NoProcess),
            Command::Unlink(n) => {
                self.links.remove(&(own.min(n), own.max(n)));
            }
            Command::Monitor(n) if self.is_alive(n) => self.monitors.push((own, n)),
            Command::Monitor(n) => self.seen[own].push(Seen::Down(n, Reason::NoProcess)),
            Command::Demonitor => {
                let first = self
                    .monitors
                    .iter()
                    .position(|(watcher, _)| *watcher == own);
                first.into_iter().for_each(|place| {
                    self.monitors.remove(place);
                });
            }
            Command::Trap(true) => {
                self.traps.insert(own);
            }
            Command::Trap(false) => {
                self.traps.remove(&own);
            }
            Command::Send(n, text) if self.is_alive(n) => self.seen[n].push(Seen::Text(own, text)),
            Command::Send(..) => {}
            Command::Exit(n, reason) => self.exit(own, n, reason),
            Command::Kill(n) => self.end(n, Reason::Killed),
            Command::Return => self.end(own, Reason::Normal),
            Command::ExitSelf(reason) => self.end(own, reason),
        }
    }

    fn exit(&mut self, from: usize, to: usize, reason: Reason) {
        if !self.is_alive(to) {
        } else if self.traps.contains(&to) {
            self.seen[to].push(Seen::Exit(from, reason));
        } else if reason != Reason::Normal || from == to {
            self.end(to, reason);
        }
    }

    fn end(&mut self, own: usize, reason: Reason) {
        if self.ended.contains_key(&own) {
            return;
        }
        self.ended.insert(own, reason);
        self.monitors.retain(|(watcher, _)| *watcher != own);
        let links = std::mem::take(&mut self.links);
        let (broken, links): (Vec<_>, _) =
            links.into_iter().partition(|(a, b)| *a == own || *b == own);
        self.links = links.into_iter().collect();
        let monitors = std::mem::take(&mut self.monitors);
        let (told, monitors): (Vec<_>, _) =
            monitors.into_iter().partition(|(_, target)| *target == own);
        self.monitors = monitors;
        for (a, b) in broken {
            self.exit(own, if a == own { b } else { a }, reason);
        }
        for (watcher, _) in told {
            if self.is_alive(watcher) {
                self.seen[watcher].push(Seen::Down(own, reason));
            }
        }
    }
}

fn spawn_world(world: &Shared) -> Vec<process::Process<Message, ()>> {
    let processes: Vec<_> = (0..PROCESSES)
        .map(|own| {
            let world = world.clone();
            process::spawn(move |inbox| live(own, inbox, world)).unwrap()
        })
        .collect();
    let mut world = world.lock().unwrap();
    world.pids = processes.iter().map(|p| p.pid().clone()).collect();
    world.seen = vec![Vec::new(); PROCESSES];
    processes
}

#[test]
fn one_command_at_a_time_is_as_in_the_model() {
    for_seeds(500, |random| {
        let mut model = Model {
            seen: vec![Vec::new(); PROCESSES],
            ..Model::default()
        };
        let (commands, ended, world) =
            Runtime::test(random.next()).block_on(async { one_by_one(random, &mut model).await });
        assert_eq!(ended, model.ended, "{commands:?}");
        for own in 0..PROCESSES {
            let (seen, expected) = (&world.lock().unwrap().seen[own], &model.seen[own]);
            match model.is_alive(own) {
                true => assert_eq!(
                    sorted_simultaneous(seen),
                    sorted_simultaneous(expected),
                    "process {own} of {commands:?}"
                ),
                // What came last may be unread, and one end may have told it of another in any order.
                false => assert!(
                    texts(expected).starts_with(&texts(seen)),
                    "process {own} of {commands:?}"
                ),
            }
        }
    });
}

fn texts(seen: &[Seen]) -> Vec<&Seen> {
    let is_text = |seen: &&Seen| matches!(seen, Seen::Text(..));
    seen.iter().filter(is_text).collect()
}

/// Exits and downs that one end causes may come in any order: a run of them is sorted.
fn sorted_simultaneous(seen: &[Seen]) -> Vec<Vec<String>> {
    let mut runs: Vec<Vec<String>> = Vec::new();
    let mut in_run = false;
    for seen in seen {
        let is_signal = !matches!(seen, Seen::Text(..));
        let text = format!("{seen:?}");
        match runs.last_mut() {
            Some(run) if in_run && is_signal => run.push(text),
            _ => runs.push(vec![text]),
        }
        in_run = is_signal;
    }
    runs.iter_mut().for_each(|run| run.sort());
    runs
}

async fn one_by_one(
    random: &mut Random,
    model: &mut Model,
) -> (Vec<(usize, Command)>, BTreeMap<usize, Reason>, Shared) {
    let world = Shared::default();
    let processes = spawn_world(&world);
    let mut commands = Vec::new();
    for number in 0..COMMANDS {
        let (own, command) = (
            random.below(PROCESSES),
            command(random, u32::try_from(number).unwrap()),
        );
        commands.push((own, command));
        processes[own].pid().send(Message::Do(command));
        model.obey(own, command);
        // Until nothing can run: time does not pass before.
        weald_kernel::sleep(std::time::Duration::from_millis(2)).await;
    }
    let mut ended = BTreeMap::new();
    for (own, process) in processes.into_iter().enumerate() {
        if process.is_finished() {
            let reason = match process.await {
                Ok(()) => Reason::Normal,
                Err(reason) => Reason::of(&reason),
            };
            ended.insert(own, reason);
        }
    }
    (commands, ended, world)
}

/// What one process saw of another, in order.
fn check_pair(from: usize, seen: &[Seen]) {
    let of_pair = seen.iter().filter(|seen| match seen {
        Seen::Text(sender, _) | Seen::Exit(sender, _) | Seen::Down(sender, _) => *sender == from,
    });
    let mut last = None;
    let mut is_down = false;
    for seen in of_pair {
        match seen {
            Seen::Text(_, number) => {
                assert!(!is_down, "a message of {from} came after its down");
                assert!(last < Some(*number), "messages of {from} out of order");
                last = Some(*number);
            }
            Seen::Down(..) => is_down = true,
            Seen::Exit(..) => {}
        }
    }
}

fn racing(
    random: &mut Random,
    end: impl AsyncFnOnce(&[process::Process<Message, ()>]),
) -> impl Future<Output = ()> {
    let world = Shared::default();
    let mut commands = Vec::new();
    for number in 0..COMMANDS {
        let number = u32::try_from(number).unwrap();
        commands.push((random.below(PROCESSES), command(random, number)));
    }
    async move {
        let processes = spawn_world(&world);
        for (own, command) in commands {
            processes[own].pid().send(Message::Do(command));
            yield_now().await;
        }
        end(&processes).await;
        let world = world.lock().unwrap();
        for seen in &world.seen {
            (0..PROCESSES).for_each(|from| check_pair(from, seen));
        }
        let count = |seen: &&Vec<Seen>| seen.len();
        assert!(
            world
                .seen
                .iter()
                .all(|seen| count(&seen) <= PROCESSES * COMMANDS)
        );
    }
}

/// Ends all, and waits for them.
async fn end_all(processes: &[process::Process<Message, ()>]) {
    let monitors: Vec<_> = processes.iter().map(process::monitor).collect();
    processes.iter().for_each(process::Process::kill);
    for monitor in monitors {
        monitor.await;
    }
}

#[test]
fn racing_commands_keep_the_order_of_each_pair() {
    for_seeds(1_000, |random| {
        let seed = random.next();
        Runtime::test(seed).block_on(racing(random, end_all));
    });
    for_seeds(40, |random| {
        let runtime = runtime(1 + random.below(4));
        for _ in 0..5 {
            runtime.block_on(racing(random, end_all));
        }
        tools::until(|| runtime.metrics().processes == 0);
    });
}
