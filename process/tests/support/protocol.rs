//! Processes that spawn, link, kill, call and name each other as they are told, and what became of it.

use std::{
    collections::BTreeMap,
    panic::resume_unwind,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use weald_process::{
    self as process, Builder, CallError, ExitReason, Inbox, Monitor, Name, Pid, Process, ProcessId,
    RegisterError, Reply, link, monitor, unlink,
};

use crate::tools::{Drops, Random, Token};

/// How many processes there are at most.
pub(crate) const LIMIT: usize = 40;
/// How many names there are.
pub(crate) const NAMES: usize = 3;
/// How long a process waits for an answer.
const TIME_LIMIT: Duration = Duration::from_millis(2);

pub(crate) enum Message {
    Do(u32, Command),
    Ask(Asked),
}

/// What a process is told to do; a number stands for a process or a name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Command {
    Spawn { is_linked: bool },
    SpawnNamed(usize),
    Link(usize),
    Unlink(usize),
    Kill(usize),
    Exit(usize, Reason),
    Return,
    Crash,
    Register(usize),
    Unregister(usize),
    Call(usize, How),
}

/// What the callee does with a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum How {
    Answer,
    Keep,
    Drop,
    /// This process answers.
    PassOn(usize),
    /// The callee ends for a reason with this number.
    End(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Normal,
    Killed,
    NoProcess,
    Crash,
    Custom(u32),
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Answer(u32),
    NoReply,
    TimedOut,
    Died(Reason),
}

pub(crate) struct Asked {
    number: u32,
    how: How,
    reply: Reply<u32>,
    _token: Token,
}

/// All processes of a run, dead or alive, in the order of their spawns.
#[derive(Clone, Default)]
pub(crate) struct World {
    state: Arc<Mutex<State>>,
    pub(crate) drops: Drops,
}

#[derive(Default)]
struct State {
    pids: Vec<Pid<Message>>,
    /// None once it is joined.
    processes: Vec<Option<Process<Message, ()>>>,
    /// None once it has told.
    monitors: Vec<Option<Monitor>>,
    ends: BTreeMap<usize, Reason>,
    outcomes: Vec<(u32, Outcome)>,
}

pub(crate) fn name(number: usize) -> Name<Message> {
    Name::of(format!("name {number}"))
}

pub(crate) fn random_command(random: &mut Random, number: u32) -> Command {
    let other = random.below(LIMIT);
    match random.below(30) {
        0..6 => Command::Spawn {
            is_linked: random.below(2) == 0,
        },
        6..8 => Command::SpawnNamed(random.below(NAMES)),
        8..11 => Command::Link(other),
        11 => Command::Unlink(other),
        12 => Command::Kill(other),
        13 => Command::Exit(other, Reason::Custom(number)),
        14 => Command::Exit(other, Reason::Normal),
        15 => match random.below(2) {
            0 => Command::Return,
            _ => Command::Crash,
        },
        16..19 => Command::Register(random.below(NAMES)),
        19 => Command::Unregister(random.below(NAMES)),
        _ => Command::Call(
            other,
            match random.below(8) {
                0..3 => How::Answer,
                3 => How::Keep,
                4 => How::Drop,
                5..7 => How::PassOn(random.below(LIMIT)),
                _ => How::End(number),
            },
        ),
    }
}

impl Reason {
    pub(crate) fn to_exit(self) -> ExitReason {
        match self {
            Reason::Normal => ExitReason::Normal,
            Reason::Custom(number) => ExitReason::custom(number),
            other => unreachable!("no process is told to end for {other:?}"),
        }
    }

    pub(crate) fn of(reason: &ExitReason) -> Reason {
        match reason {
            ExitReason::Normal => Reason::Normal,
            ExitReason::Killed => Reason::Killed,
            ExitReason::NoProcess => Reason::NoProcess,
            ExitReason::Custom(custom) => Reason::Custom(*custom.downcast_ref().unwrap()),
            ExitReason::Crash(crash) => {
                assert_eq!(crash.message(), "on purpose");
                Reason::Crash
            }
            other => panic!("no reason of this test: {other}"),
        }
    }
}

impl World {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().pids.len()
    }

    /// The process with this number, which is taken modulo the number of processes.
    pub(crate) fn pid(&self, number: usize) -> Pid<Message> {
        let state = self.lock();
        state.pids[number % state.pids.len()].clone()
    }

    pub(crate) fn index(&self, id: ProcessId) -> usize {
        let of_process = |pid: &Pid<Message>| pid.id() == id;
        self.lock().pids.iter().position(of_process).unwrap()
    }

    /// Spawns a process, unless there are too many, or its name is taken.
    pub(crate) fn spawn(&self, is_linked: bool, named: Option<usize>) {
        let mut state = self.lock();
        if state.pids.len() == LIMIT {
            return;
        }
        let world = self.clone();
        let body = move |inbox| boxed(inbox, world);
        let builder = match is_linked {
            true => Builder::new().link(),
            false => Builder::new(),
        };
        let (process, monitor) = match named {
            None => builder.spawn_monitor(body).unwrap(),
            Some(number) => match name(number).spawn(builder, body) {
                Ok(process) => {
                    // It has not ended: nobody knows it.
                    let monitor = monitor(&process);
                    (process, monitor)
                }
                Err(RegisterError::Taken(_)) => return,
                Err(error) => panic!("{error}"),
            },
        };
        state.pids.push(process.pid().clone());
        state.processes.push(Some(process));
        state.monitors.push(Some(monitor));
    }

    /// The reason of each unit that has ended.
    pub(crate) fn ends(&self) -> BTreeMap<usize, Reason> {
        let mut state = self.lock();
        for own in 0..state.pids.len() {
            let down = state.monitors[own].as_mut().and_then(Monitor::try_down);
            if let Some(down) = down {
                state.monitors[own] = None;
                state.ends.insert(own, Reason::of(&down.reason));
            }
        }
        state.ends.clone()
    }

    /// Waits for the end of a process. The unit that joins it learns the reason that its monitor
    /// tells.
    pub(crate) async fn end_of(&self, own: usize) {
        let monitor = self.lock().monitors[own].take();
        if let Some(monitor) = monitor {
            let down = monitor.await;
            assert_eq!(down.process, Some(self.pid(own).id()));
            let mut state = self.lock();
            assert_eq!(state.ends.insert(own, Reason::of(&down.reason)), None);
        }
        let process = self.lock().processes[own].take().unwrap();
        let reason = process.await.err().unwrap_or(ExitReason::Normal);
        assert_eq!(self.lock().ends[&own], Reason::of(&reason));
    }

    /// The outcomes of the calls that have ended since this was last asked.
    pub(crate) fn take_outcomes(&self) -> Vec<(u32, Outcome)> {
        std::mem::take(&mut self.lock().outcomes)
    }
}

/// A request to `callee`, and how it ends.
pub(crate) async fn ask(
    callee: Pid<Message>,
    (number, how): (u32, How),
    time_limit: Option<Duration>,
    token: Token,
) -> Outcome {
    let call = callee.call(move |reply| {
        Message::Ask(Asked {
            number,
            how,
            reply,
            _token: token,
        })
    });
    let outcome = match time_limit {
        Some(time_limit) => call.within(time_limit).await,
        None => call.await,
    };
    match outcome {
        Ok(answer) => Outcome::Answer(answer),
        Err(CallError::NoReply) => Outcome::NoReply,
        Err(CallError::TimedOut) => Outcome::TimedOut,
        Err(CallError::Died(reason)) => Outcome::Died(Reason::of(&reason)),
        Err(other) => panic!("no outcome of this test: {other}"),
    }
}

/// As [`live`]; boxed, because a process spawns others of its kind.
fn boxed(inbox: Inbox<Message>, world: World) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(live(inbox, world))
}

async fn live(mut inbox: Inbox<Message>, world: World) {
    let _token = world.drops.token();
    let mut kept = Vec::new();
    loop {
        match inbox.receive().await {
            Message::Do(_, Command::Return) => return,
            Message::Do(number, Command::Call(n, how)) => {
                let callee = world.pid(n);
                if callee != inbox.pid() {
                    let token = world.drops.token();
                    let outcome = ask(callee, (number, how), Some(TIME_LIMIT), token).await;
                    world.lock().outcomes.push((number, outcome));
                }
            }
            Message::Do(_, command) => obey(command, &inbox, &world),
            Message::Ask(asked) => match asked.how {
                How::Answer => drop(asked.reply.send(asked.number)),
                How::Keep => kept.push(asked),
                How::Drop => drop(asked),
                How::PassOn(n) => world.pid(n).send(Message::Ask(Asked {
                    how: How::Answer,
                    ..asked
                })),
                How::End(number) => process::exit(ExitReason::custom(number)),
            },
        }
    }
}

fn obey(command: Command, inbox: &Inbox<Message>, world: &World) {
    match command {
        Command::Spawn { is_linked } => world.spawn(is_linked, None),
        Command::SpawnNamed(number) => world.spawn(false, Some(number)),
        Command::Link(n) => link(&world.pid(n)),
        Command::Unlink(n) => unlink(&world.pid(n)),
        Command::Kill(n) => world.pid(n).kill(),
        Command::Exit(n, reason) => world.pid(n).exit(&reason.to_exit()),
        Command::Crash => resume_unwind(Box::new("on purpose")),
        Command::Register(number) => match name(number).register(&inbox.pid()) {
            // The last one: it is to end, and has not come to a wait yet.
            Ok(()) | Err(RegisterError::Taken(_) | RegisterError::NoProcess(_)) => {}
            Err(error) => panic!("{error}"),
        },
        Command::Unregister(number) => {
            name(number).unregister();
        }
        Command::Return | Command::Call(..) => unreachable!("it was obeyed"),
    }
}
