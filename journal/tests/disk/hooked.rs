//! A medium that asks a hook before it creates or writes, so that a test can refuse a file or panic there.

use std::cell::{Cell, RefCell};
use std::io;
use std::sync::{Arc, Mutex};

use weald_forest::CommitId;
use weald_forest::journal::{AppendError, Appended, Durability, Journal, Level, Resolved};
use weald_journal::{
    DiskJournal, LockError, Medium, MediumFile, ReadOnlyJournal, Settings, SimulatedDisk, Work,
};

use crate::erasing::{self, blob};
use crate::records::{all, append, flush, is_durable, must_append, open, put_checkpoint, small};

pub(crate) type Hook = fn() -> io::Result<()>;

#[derive(Clone, Default)]
pub(crate) struct Hooks {
    pub(crate) read_lock: Arc<Mutex<Option<Hook>>>,
    pub(crate) write_lock: Arc<Mutex<Option<Hook>>>,
    /// Asked when a file of the medium, or its lock, is dropped.
    pub(crate) drop: Arc<Mutex<Option<Hook>>>,
    pub(crate) create: Arc<Mutex<Option<Hook>>>,
    open: Arc<Mutex<Option<Hook>>>,
    pub(crate) write: Arc<Mutex<Option<Hook>>>,
    sync: Arc<Mutex<Option<Hook>>>,
    pub(crate) remove: Arc<Mutex<Option<Hook>>>,
    pub(crate) sync_names: Arc<Mutex<Option<Hook>>>,
    pub(crate) name: Arc<Mutex<Option<Hook>>>,
}

pub(crate) fn set(hook: &Mutex<Option<Hook>>, to: Option<Hook>) {
    *hook.lock().unwrap() = to;
}

fn ask(hook: &Mutex<Option<Hook>>) -> io::Result<()> {
    let hook = *hook.lock().unwrap();
    hook.map_or(Ok(()), |hook| hook())
}

impl Hooks {
    /// Asks this before each file is opened.
    pub(crate) fn on_open(&self, hook: Option<Hook>) {
        set(&self.open, hook);
    }

    /// Asks this before each write.
    pub(crate) fn on_write(&self, hook: Hook) {
        set(&self.write, Some(hook));
    }
}

pub(crate) struct Hooked(pub(crate) SimulatedDisk, pub(crate) Hooks);

struct HookedFile(Box<dyn MediumFile>, Hooks);

impl Medium for Hooked {
    fn name(&self) -> String {
        ask(&self.1.name).unwrap();
        self.0.name()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        ask(&self.1.open)?;
        self.0.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn MediumFile>> {
        ask(&self.1.create)?;
        let file = self.0.create(name)?;
        Ok(Box::new(HookedFile(file, self.1.clone())))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn MediumFile>> {
        ask(&self.1.open)?;
        let file = self.0.open(name)?;
        Ok(Box::new(HookedFile(file, self.1.clone())))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        ask(&self.1.remove)?;
        self.0.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        ask(&self.1.sync_names)?;
        self.0.sync_names()
    }

    fn lock(&self) -> Result<Box<dyn MediumFile>, LockError> {
        let lock = self.0.lock()?;
        Ok(Box::new(HookedLock(lock, self.1.clone())))
    }
}

struct HookedLock(Box<dyn MediumFile>, Hooks);

impl Drop for HookedLock {
    fn drop(&mut self) {
        ask(&self.1.drop).unwrap();
    }
}

impl Drop for HookedFile {
    fn drop(&mut self) {
        ask(&self.1.drop).unwrap();
    }
}

impl MediumFile for HookedLock {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        ask(&self.1.read_lock)?;
        self.0.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        ask(&self.1.write_lock)?;
        self.0.write_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn cut(&self, len: u64) -> io::Result<()> {
        self.0.cut(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
}

impl MediumFile for HookedFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        ask(&self.1.write)?;
        self.0.write_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        ask(&self.1.sync)?;
        self.0.sync()
    }

    fn cut(&self, len: u64) -> io::Result<()> {
        self.0.cut(len)
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
}

#[test]
fn a_segment_whose_file_cannot_be_had_refuses_the_commits_that_need_it_and_no_others() {
    // Too many open files, and no right to create one.
    let hooks: [Hook; 2] = [
        || Err(io::Error::from_raw_os_error(24)),
        || Err(io::Error::from_raw_os_error(13)),
    ];
    for hook in hooks {
        let (disk, hooks) = (SimulatedDisk::new(), Hooks::default());
        let medium = Hooked(disk.clone(), hooks.clone());
        let journal = DiskJournal::open_on(medium, small()).unwrap();
        must_append(&journal, 1, 100);
        flush(&journal);
        set(&hooks.create, Some(hook));
        let mut taken = 1;
        let refused = loop {
            match append(&journal, taken + 1, 500) {
                Ok(Appended::Accepted(_)) => taken += 1,
                Ok(Appended::Sent(answer)) => break answer,
                Err(error) => panic!("{error}"),
            }
        };
        flush(&journal);
        assert_eq!(pollster::block_on(refused), Err(AppendError::Unprepared));
        assert_eq!(all(&journal).len() as u64, taken);
        set(&hooks.create, None);
        must_append(&journal, taken + 1, 500);
        flush(&journal);
        drop(journal);
        let journal = DiskJournal::open_on(disk, small()).unwrap();
        assert_eq!(all(&journal).len() as u64, taken + 1);
    }
}

/// Several segments are prepared for a large record, the disk is full, and they cannot be removed. The next preparation
/// replaces them, and may end anywhere.
#[test]
fn what_a_refused_preparation_has_left_is_replaced_at_one_instant() {
    for at in 0..8 {
        let (disk, hooks) = (SimulatedDisk::new(), Hooks::default());
        let medium = Hooked(disk.clone(), hooks.clone());
        let journal = DiskJournal::open_on(medium, small()).unwrap();
        must_append(&journal, 1, 100);
        flush(&journal);
        let segments = || {
            disk.names()
                .iter()
                .filter(|name| name.ends_with(".segment"))
                .count()
        };
        let had = segments();
        let _room = journal.when_room(9_000, &[], &[]).unwrap();
        disk.set_room(Some(disk.used() + 7_000));
        set(&hooks.remove, Some(|| Err(io::Error::from_raw_os_error(5))));
        while journal.work(Work::Prepare) {}
        assert!(
            segments() > had + 1,
            "there was room for more than the next one"
        );
        disk.set_room(None);
        set(&hooks.remove, None);
        disk.cut_power_at(disk.operations() + at);
        assert!(matches!(append(&journal, 2, 5_000), Ok(Appended::Sent(_))));
        while journal.work(Work::Prepare) {}
        for seed in 0..4 {
            let journal = open(&disk.after_power_cut(seed)).unwrap();
            assert_eq!(all(&journal).len(), 1);
        }
    }
}

/// Files of prepared segments may be left when their room could not be given back, and when their names could not be
/// synced.
#[test]
fn closing_leaves_no_gap_in_front_of_what_a_refused_preparation_has_left() {
    let full: Hook = || Err(io::Error::from_raw_os_error(28));
    let broken: Hook = || Err(io::Error::from_raw_os_error(5));
    for (of_names, room) in [(false, 7_000), (true, 100_000)] {
        let (disk, hooks) = (SimulatedDisk::new(), Hooks::default());
        let medium = Hooked(disk.clone(), hooks.clone());
        let journal = DiskJournal::open_on(medium, small()).unwrap();
        must_append(&journal, 1, 100);
        flush(&journal);
        let _room = journal.when_room(9_000, &[], &[]).unwrap();
        disk.set_room(Some(disk.used() + room));
        set(&hooks.remove, Some(broken));
        if of_names {
            set(&hooks.sync_names, Some(full));
        }
        while journal.work(Work::Prepare) {}
        disk.set_room(None);
        set(&hooks.remove, None);
        set(&hooks.sync_names, None);
        let has = |disk: &SimulatedDisk| {
            let names = disk.names().into_iter();
            names.filter(|name| name.ends_with(".segment")).count()
        };
        assert!(has(&disk) > 2, "a file of a refused preparation was left");
        drop(journal);
        let begun = has(&disk);
        assert_eq!(begun, 1, "closing removes what was not begun");
        assert_eq!(all(&open(&disk).unwrap()).len(), 1);
    }
}

#[test]
fn a_writer_that_fails_because_it_was_overtaken_says_so() {
    let (disk, hooks) = (SimulatedDisk::new(), Hooks::default());
    let old = DiskJournal::open_on(Hooked(disk.clone(), hooks.clone()), small()).unwrap();
    must_append(&old, 1, 100);
    disk.break_lock();
    let new = open(&disk).unwrap();
    // As a file that the newer one has removed.
    set(&hooks.write, Some(|| Err(io::ErrorKind::NotFound.into())));
    old.work(Work::Write);
    assert_eq!(old.refusal(), AppendError::Fenced);
    let told = AppendError::Fenced.to_string();
    assert!(told.contains("end one of the two"), "{told}");
    // Removing the directory leads to the same error.
    assert!(told.contains("`lock` was removed"), "{told}");
    drop((old, new));
}

#[test]
fn erasing_needs_no_further_open_file() {
    let (disk, hooks) = (SimulatedDisk::new(), Hooks::default());
    let medium = Hooked(disk.clone(), hooks.clone());
    let journal = DiskJournal::open_on(medium, small()).unwrap();
    for node in 1..=4 {
        erasing::append(&journal, node, (&[blob(node, 30)], None)).unwrap();
    }
    flush(&journal);
    let too_many: Hook = || Err(io::Error::from_raw_os_error(24));
    set(&hooks.create, Some(too_many));
    set(&hooks.open, Some(too_many));
    for node in 1..=3 {
        let erased = erasing::append(&journal, 4 + node, (&[], Some(node))).unwrap();
        flush(&journal);
        assert!(is_durable(&journal, erased));
    }
    set(&hooks.create, None);
    set(&hooks.open, None);
    let of_node = |node| erasing::read(&journal, node).is_some();
    assert_eq!([1, 2, 3, 4].map(of_node), [false, false, false, true]);
    drop(journal);
    let journal = open(&disk).unwrap();
    let of_node = |node| erasing::read(&journal, node).is_some();
    assert_eq!([1, 2, 3, 4].map(of_node), [false, false, false, true]);
}

#[test]
fn a_medium_that_panics_ends_the_journal_and_nobody_waits_for_ever() {
    for (works, of) in [
        (
            &[Work::Write][..],
            (|hooks| &hooks.write) as fn(&Hooks) -> &Mutex<Option<Hook>>,
        ),
        (&[Work::Write, Work::Sync], |hooks| &hooks.sync),
        (&[Work::Prepare], |hooks| &hooks.create),
    ] {
        let (disk, hooks) = (SimulatedDisk::new(), Hooks::default());
        let medium = Hooked(disk.clone(), hooks.clone());
        let journal = DiskJournal::open_on(medium, small()).unwrap();
        let position = must_append(&journal, 1, 100);
        set(of(&hooks), Some(|| panic!("by a test")));
        for work in works {
            journal.work(*work);
        }
        let waits = journal.when_reached(position, Level::Durable);
        assert_eq!(pollster::block_on(waits), Durability::Unknown);
        assert_eq!(append(&journal, 2, 10).err(), Some(AppendError::Poisoned));
        for work in [Work::Write, Work::Sync, Work::Mark, Work::Prepare] {
            assert!(!journal.work(work), "it goes on after a failure");
        }
    }
}

thread_local! {
    /// The journal that is failing.
    static FAILING: RefCell<Option<DiskJournal>> = const { RefCell::new(None) };
    /// How often a failure was reported.
    static REPORTS: Cell<u32> = const { Cell::new(0) };
}

#[test]
fn nothing_is_written_between_a_failure_and_its_report() {
    for of in 0..3 {
        let (disk, hooks) = (SimulatedDisk::new(), Hooks::default());
        let failing = [&hooks.write, &hooks.sync, &hooks.create][of];
        let journal = DiskJournal::open_on(Hooked(disk, hooks.clone()), small()).unwrap();
        FAILING.set(Some(journal.clone()));
        must_append(&journal, 1, 100);
        set(failing, Some(|| Err(io::Error::other("by a test"))));
        // The report names the medium.
        let hook: Hook = || {
            REPORTS.set(REPORTS.get() + 1);
            FAILING.with_borrow(|journal| {
                let journal = journal.as_ref().unwrap();
                assert_eq!(append(journal, 2, 100).err(), Some(AppendError::Poisoned));
                for work in [Work::Write, Work::Sync, Work::Mark, Work::Prepare] {
                    assert!(!journal.work(work), "it goes on after a failure");
                }
            });
            Ok(())
        };
        set(&hooks.name, Some(hook));
        for work in [Work::Write, Work::Sync, Work::Prepare] {
            journal.work(work);
        }
        assert_eq!(REPORTS.replace(0), 1);
        FAILING.set(None);
        set(&hooks.name, None);
    }
}

#[test]
fn a_journal_whose_medium_panics_on_its_threads_is_closed() {
    let hooks = Hooks::default();
    let medium = Hooked(SimulatedDisk::new(), hooks.clone());
    let journal = DiskJournal::open_on(medium, Settings::new().segment(1 << 20)).unwrap();
    set(&hooks.write, Some(|| panic!("by a test")));
    let Ok(Appended::Accepted(position)) = append(&journal, 1, 100) else {
        panic!("there is no room");
    };
    let waits = journal.when_reached(position, Level::Durable);
    assert_eq!(pollster::block_on(waits), Durability::Unknown);
    journal.close();
}

thread_local! {
    /// Whether this thread may not wait for the medium.
    static MAY_NOT_WAIT: Cell<bool> = const { Cell::new(false) };
}

/// What a thread asks that may not wait.
const REFUSE: Hook = || match MAY_NOT_WAIT.get() {
    true => Err(io::Error::other("it waits")),
    false => Ok(()),
};

#[test]
fn a_reader_looks_for_a_commit_on_another_thread() {
    let disk = SimulatedDisk::new();
    let journal = open(&disk).unwrap();
    must_append(&journal, 1, 100);
    flush(&journal);
    let hooks = Hooks::default();
    let reader = ReadOnlyJournal::open_on(Hooked(disk, hooks.clone())).unwrap();
    set(&hooks.open, Some(REFUSE));
    MAY_NOT_WAIT.set(true);
    let resolve = |id| pollster::block_on(reader.resolve(CommitId(id)));
    assert!(matches!(resolve(1), Resolved::Stored { .. }));
    assert_eq!(resolve(2), Resolved::Unknown);
    MAY_NOT_WAIT.set(false);
    set(&hooks.open, Some(|| panic!("by a test")));
    assert_eq!(resolve(1), Resolved::Unknown);
}

#[test]
fn what_became_of_a_commit_is_looked_for_on_another_thread() {
    let hooks = Hooks::default();
    let medium = Hooked(SimulatedDisk::new(), hooks.clone());
    let journal = DiskJournal::open_on(medium, Settings::new().segment(1 << 20)).unwrap();
    let Ok(Appended::Accepted(position)) = append(&journal, 1, 100) else {
        panic!("there is no room");
    };
    pollster::block_on(journal.when_reached(position, Level::Buffered));
    set(&hooks.open, Some(REFUSE));
    MAY_NOT_WAIT.set(true);
    let resolve = |id| pollster::block_on(journal.resolve(CommitId(id)));
    let found = resolve(1);
    assert!(matches!(found, Resolved::Stored { position: at, .. } if at == position));
    assert_eq!(resolve(2), Resolved::NotStored);
    MAY_NOT_WAIT.set(false);
    set(&hooks.open, Some(|| panic!("by a test")));
    assert_eq!(resolve(1), Resolved::Unknown);
    set(&hooks.open, None);
    journal.close();
}

/// A journal that gets a record when one of its files is opened the next time.
static BESIDE: Mutex<Option<DiskJournal>> = Mutex::new(None);

#[test]
fn a_follower_misses_no_record_that_is_written_while_it_looks_and_finds_a_mark_only() {
    let hooks = Hooks::default();
    let medium = Hooked(SimulatedDisk::new(), hooks.clone());
    let journal = DiskJournal::open_on(medium, small()).unwrap();
    must_append(&journal, 1, 100);
    flush(&journal);
    let mut follower = journal.follow(weald_forest::journal::Position::default());
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(follower.poll_next(&mut cx).is_ready());
    assert!(follower.poll_next(&mut cx).is_pending());
    assert!(journal.work(Work::Mark));
    *BESIDE.lock().unwrap() = Some(journal.clone());
    set(
        &hooks.open,
        Some(|| {
            if let Some(journal) = BESIDE.lock().unwrap().take() {
                must_append(&journal, 2, 100);
                assert!(journal.work(Work::Write));
            }
            Ok(())
        }),
    );
    let std::task::Poll::Ready(Ok(entries)) = follower.poll_next(&mut cx) else {
        panic!("the record was missed");
    };
    assert_eq!(entries.len(), 1);
    assert!(BESIDE.lock().unwrap().is_none());
}

#[test]
fn a_checkpoint_whose_position_cannot_be_looked_up_says_why() {
    let hooks = Hooks::default();
    let disk = SimulatedDisk::new();
    let journal = DiskJournal::open_on(Hooked(disk.clone(), hooks.clone()), small()).unwrap();
    let at = must_append(&journal, 1, 100);
    flush(&journal);
    hooks.on_open(Some(|| Err(io::Error::other("too many open files"))));
    let put = || put_checkpoint(&journal, at, &[b"all"]);
    let refused = put().unwrap_err().to_string();
    assert!(refused.contains("too many open files"), "{refused}");
    hooks.on_open(None);
    // Damage is no missing record either.
    let name = "0000000000000001-00000001.segment";
    let whole = disk.file(name).unwrap();
    let mut damaged = whole.clone();
    let begin = usize::try_from(at.0 & 0xFFFF_FFFF).unwrap();
    damaged[begin - 5] ^= 1;
    disk.set_file(name, Some(&damaged));
    let refused = put().unwrap_err().to_string();
    assert!(refused.contains(name), "{refused}");
    disk.set_file(name, Some(&whole));
    put().unwrap();
}
