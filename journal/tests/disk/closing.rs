//! A journal with threads is closed while its thread that prepares is within a call of the medium, or by a waker that
//! this thread runs.

use std::io;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread;

use weald_forest::journal::{AppendError, Journal};
use weald_journal::{DiskJournal, Settings, SimulatedDisk};

use crate::hooked::{Hook, Hooked, Hooks, set};
use crate::records::{append, changes};

/// The thread that prepares stops here until a test lets it go on.
struct Latch {
    /// Whether it has come, and whether it may go on.
    state: Mutex<(bool, bool)>,
    changed: Condvar,
}

impl Latch {
    const fn new() -> Self {
        Self {
            state: Mutex::new((false, false)),
            changed: Condvar::new(),
        }
    }

    fn change(&self, change: impl FnOnce(&mut (bool, bool))) {
        change(&mut self.state.lock().unwrap());
        self.changed.notify_all();
    }

    fn wait(&self, until: impl Fn(&(bool, bool)) -> bool) {
        let state = self.state.lock().unwrap();
        drop(self.changed.wait_while(state, |state| !until(state)));
    }

    /// Whether this is the thread that prepares; it has passed the latch then.
    fn pass(&self) -> bool {
        if thread::current().name() != Some("journal-space") {
            return false;
        }
        self.change(|(has_come, _)| *has_come = true);
        self.wait(|(_, is_open)| *is_open);
        true
    }

    fn refuse(&self, code: i32) -> io::Result<()> {
        match self.pass() {
            true => Err(io::Error::from_raw_os_error(code)),
            false => Ok(()),
        }
    }

    fn wait_until_reached(&self) {
        self.wait(|(has_come, _)| *has_come);
    }

    fn open(&self) {
        self.change(|(_, is_open)| *is_open = true);
    }
}

#[test]
fn a_journal_is_closed_although_a_segment_that_is_being_prepared_finds_no_room_or_no_descriptor() {
    static FULL: Latch = Latch::new();
    static UNOPENED: Latch = Latch::new();
    let cases: [(&Latch, Hook); 2] = [
        (&FULL, || FULL.refuse(28)),
        (&UNOPENED, || UNOPENED.refuse(24)),
    ];
    for (latch, hook) in cases {
        let hooks = Hooks::default();
        set(&hooks.create, Some(hook));
        let medium = Hooked(SimulatedDisk::new(), hooks);
        let journal = DiskJournal::open_on(medium, Settings::new().segment(1 << 20)).unwrap();
        latch.wait_until_reached();
        let closing = journal.clone();
        let closing = thread::spawn(move || closing.close());
        let refused = (1..).find_map(|number| {
            thread::yield_now();
            append(&journal, number, 10).err()
        });
        assert_eq!(refused, Some(AppendError::Poisoned));
        latch.open();
        closing.join().unwrap();
    }
}

struct Closes(DiskJournal, Sender<()>);

impl Wake for Closes {
    fn wake(self: Arc<Self>) {
        self.0.close();
        self.1.send(()).unwrap();
    }
}

#[test]
fn a_waker_closes_the_journal_when_its_large_record_was_written_ahead() {
    static LATCH: Latch = Latch::new();
    let hooks = Hooks::default();
    set(&hooks.create, Some(|| Ok(_ = LATCH.pass())));
    let medium = Hooked(SimulatedDisk::new(), hooks);
    let journal = DiskJournal::open_on(medium, Settings::new().segment(2048)).unwrap();
    LATCH.wait_until_reached();
    let (closed, is_closed) = channel();
    let waker = Waker::from(Arc::new(Closes(journal.clone(), closed)));
    let mut wait = journal.when_room(5_000, &changes(1, 5_000), &[]).unwrap();
    assert!(
        wait.as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    LATCH.open();
    is_closed.recv().unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    assert!(wait.as_mut().poll(&mut cx).is_ready());
    assert_eq!(append(&journal, 1, 10).err(), Some(AppendError::Poisoned));
}
