//! Processes with mailboxes on one thread: arrays, linked by indices.
//!
//! A process is a function, a word and, where a row needs it, more of its own. It parks when its mailbox is empty.
//! It is in the queue of those that run from its spawn, or from the first message after it has parked, until it runs.

use super::queue::{Linked, NONE, Queue, index};

/// The `next` of a process that has parked, which is in no queue.
const PARKED: u32 = NONE - 1;

/// What a process does each time it runs, until its mailbox is empty.
pub(super) type Code<M, O = ()> = fn(&mut World<M, O>, u32);

struct Process<M: Copy, O> {
    code: Code<M, O>,
    mail: Queue,
    next: u32,
    word: u32,
    own: O,
}

struct Node<M: Copy> {
    next: u32,
    message: M,
}

impl<M: Copy, O> Linked for Process<M, O> {
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

impl<M: Copy> Linked for Node<M> {
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

/// All processes and messages, and what they have counted.
pub(super) struct World<M: Copy, O = ()> {
    processes: Vec<Process<M, O>>,
    nodes: Vec<Node<M>>,
    runs: Queue,
    /// The nodes without a message, linked from the last that was freed.
    free: u32,
    pub(super) started: usize,
    pub(super) ended: usize,
    pub(super) polls: usize,
}

impl<M: Copy, O> World<M, O> {
    /// Room for this many processes, whose memory is first touched when they are spawned.
    pub(super) fn with_room(processes: usize) -> Self {
        Self {
            processes: Vec::with_capacity(processes),
            nodes: Vec::new(),
            runs: Queue::EMPTY,
            free: NONE,
            started: 0,
            ended: 0,
            polls: 0,
        }
    }

    /// A process that runs this code, for the first time soon.
    #[inline]
    pub(super) fn spawn(&mut self, code: Code<M, O>, word: u32) -> u32
    where
        O: Default,
    {
        self.spawn_with(code, word, O::default())
    }

    /// The same with more of its own.
    #[inline]
    pub(super) fn spawn_with(&mut self, code: Code<M, O>, word: u32, own: O) -> u32 {
        let process = index(self.processes.len());
        self.processes.push(Process {
            code,
            mail: Queue::EMPTY,
            next: NONE,
            word,
            own,
        });
        self.runs.push(&mut self.processes, process);
        process
    }

    /// The word of a process.
    #[inline]
    pub(super) fn word(&mut self, process: u32) -> &mut u32 {
        &mut self.processes[process as usize].word
    }

    /// What a process has besides its word.
    #[inline]
    pub(super) fn own(&mut self, process: u32) -> &mut O {
        &mut self.processes[process as usize].own
    }

    #[inline]
    pub(super) fn send(&mut self, to: u32, message: M) {
        if self.post(to, message) {
            self.runs.push(&mut self.processes, to);
        }
    }

    /// Sends, and a receiver that has parked runs before all others.
    #[inline]
    pub(super) fn send_first(&mut self, to: u32, message: M) {
        if self.post(to, message) {
            self.runs.push_first(&mut self.processes, to);
        }
    }

    /// A parked process runs soon, without a message.
    #[inline]
    pub(super) fn wake(&mut self, process: u32) {
        if self.processes[process as usize].next == PARKED {
            self.runs.push(&mut self.processes, process);
        }
    }

    /// A running process waits to be woken.
    #[inline]
    pub(super) fn park(&mut self, process: u32) {
        self.processes[process as usize].next = PARKED;
    }

    /// Queues a message; returns whether its receiver has parked.
    #[inline]
    fn post(&mut self, to: u32, message: M) -> bool {
        let node = self.free;
        let node = if node == NONE {
            self.nodes.push(Node {
                next: NONE,
                message,
            });
            index(self.nodes.len() - 1)
        } else {
            let taken = &mut self.nodes[node as usize];
            self.free = taken.next;
            taken.message = message;
            node
        };
        let receiver = &mut self.processes[to as usize];
        receiver.mail.push(&mut self.nodes, node);
        receiver.next == PARKED
    }

    /// The next message of a running process; it parks if there is none.
    #[inline]
    pub(super) fn receive(&mut self, process: u32) -> Option<M> {
        let receiver = &mut self.processes[process as usize];
        let Some(node) = receiver.mail.pop(&mut self.nodes) else {
            receiver.next = PARKED;
            return None;
        };
        let freed = &mut self.nodes[node as usize];
        freed.next = self.free;
        self.free = node;
        Some(freed.message)
    }

    /// Runs until no process has anything to do.
    pub(super) fn run(&mut self) {
        while let Some(process) = self.runs.pop(&mut self.processes) {
            self.polls += 1;
            let code = self.processes[process as usize].code;
            code(self, process);
        }
    }
}
