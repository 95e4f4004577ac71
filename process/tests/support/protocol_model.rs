//! What must become of the processes of `protocol.rs` if each command is carried out before the next one.

use std::collections::{BTreeMap, BTreeSet};

use crate::protocol::{Command, How, LIMIT, NAMES, Outcome, Reason};

pub(crate) struct Model {
    count: usize,
    links: BTreeSet<(usize, usize)>,
    /// Which process has which name.
    pub(crate) names: Vec<Option<usize>>,
    pub(crate) ended: BTreeMap<usize, Reason>,
}

impl Model {
    pub(crate) fn new() -> Model {
        Model {
            count: 0,
            links: BTreeSet::new(),
            names: vec![None; NAMES],
            ended: BTreeMap::new(),
        }
    }

    fn is_alive(&self, own: usize) -> bool {
        !self.ended.contains_key(&own)
    }

    /// A process that nobody is linked to. Returns its number, if there may be one more.
    pub(crate) fn spawn(&mut self) -> Option<usize> {
        let own = self.count;
        (own < LIMIT).then(|| self.count += 1).map(|()| own)
    }

    /// Carries a command out. Returns the outcome of the call that it made, if it made one.
    pub(crate) fn obey(&mut self, own: usize, number: u32, command: Command) -> Option<Outcome> {
        if !self.is_alive(own) {
            return None;
        }
        let at = |n: usize| n % self.count;
        match command {
            Command::Spawn { is_linked } => {
                if let Some(child) = self.spawn()
                    && is_linked
                {
                    self.links.insert((own, child));
                }
            }
            Command::SpawnNamed(name) => {
                if self.names[name].is_none() {
                    self.names[name] = self.spawn();
                }
            }
            Command::Link(n) => self.link(own, at(n)),
            Command::Unlink(n) => {
                let n = at(n);
                self.links.remove(&(own.min(n), own.max(n)));
            }
            Command::Kill(n) => self.end(at(n), Reason::Killed),
            Command::Exit(n, reason) => self.exit(own, at(n), reason),
            Command::Return => self.end(own, Reason::Normal),
            Command::Crash => self.end(own, Reason::Crash),
            Command::Register(name) => {
                self.names[name].get_or_insert(own);
            }
            Command::Unregister(name) => self.names[name] = None,
            Command::Call(n, how) => {
                let callee = at(n);
                return (callee != own).then(|| self.call(number, (own, callee), how));
            }
        }
        None
    }

    fn call(&mut self, number: u32, (own, callee): (usize, usize), how: How) -> Outcome {
        match how {
            _ if !self.is_alive(callee) => Outcome::Died(Reason::NoProcess),
            How::Answer => Outcome::Answer(number),
            How::Keep => Outcome::TimedOut,
            How::Drop => Outcome::NoReply,
            How::PassOn(n) => match n % self.count {
                dead if !self.is_alive(dead) => Outcome::NoReply,
                // It waits for itself.
                caller if caller == own => Outcome::TimedOut,
                _ => Outcome::Answer(number),
            },
            How::End(n) => {
                self.end(callee, Reason::Custom(n));
                Outcome::Died(Reason::Custom(n))
            }
        }
    }

    fn link(&mut self, own: usize, other: usize) {
        if !self.is_alive(other) {
            self.exit(other, own, Reason::NoProcess);
        } else if own != other {
            self.links.insert((own.min(other), own.max(other)));
        }
    }

    fn exit(&mut self, from: usize, to: usize, reason: Reason) {
        if reason != Reason::Normal || from == to {
            self.end(to, reason);
        }
    }

    fn end(&mut self, own: usize, reason: Reason) {
        if !self.is_alive(own) {
            return;
        }
        self.ended.insert(own, reason);
        for name in &mut self.names {
            name.take_if(|holder| *holder == own);
        }
        let of_own = |(a, b): &(usize, usize)| *a == own || *b == own;
        let broken: Vec<_> = self.links.iter().copied().filter(of_own).collect();
        self.links.retain(|link| !of_own(link));
        for (a, b) in broken {
            self.exit(own, if a == own { b } else { a }, reason);
        }
    }
}
