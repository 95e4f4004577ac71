//! Erased bytes are also overwritten in the memory of a forest on disk: when the journal has not written them yet, when
//! they were read back from it, and when nobody has read them yet.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(unsafe_code, reason = "an allocator looks at what is freed")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Waker};
use std::thread::{self, JoinHandle};

use pollster::block_on;
use weald_forest::{Forest, Level};
use weald_journal::{DiskForest, DiskJournal, Settings, SimulatedDisk, Work};
use zeroize::Zeroizing;

/// Longer than a part, so that it is put together when it is read back.
const SECRET: &[u8; 3000] = &{
    let (mut secret, mut at, mut letter) = ([0; 3000], 0, b'a');
    while at < secret.len() {
        secret[at] = letter;
        letter = if letter == b'w' { b'a' } else { letter + 1 };
        at += 1;
    }
    secret
};

/// What of it is looked for.
const PART: usize = 40;

/// How many blocks were freed with a part of the secret in them.
static FREED: AtomicUsize = AtomicUsize::new(0);

/// The key that is looked for, in four words, and how many blocks were freed with it.
static KEY: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];
static FREED_KEYS: AtomicUsize = AtomicUsize::new(0);

fn is_key(bytes: &[u8]) -> bool {
    let (words, _) = bytes.as_chunks::<8>();
    words
        .iter()
        .zip(&KEY)
        .all(|(word, key)| u64::from_le_bytes(*word) == key.load(Ordering::Relaxed))
}

fn has_key(bytes: &[u8]) -> bool {
    let is_known = KEY[0].load(Ordering::Relaxed) != 0;
    is_known && bytes.windows(32).any(is_key)
}

struct Watching;

// SAFETY: all of it is the system's allocator's; a block is read before it is freed, within its length. Some of it may
// never have been written, and what is read there is only compared.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise. Zeroed, so that what is read later was written.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block has this length and was zeroed at first.
        let bytes = unsafe { std::slice::from_raw_parts(block, layout.size()) };
        if bytes.windows(PART).any(|window| window == &SECRET[..PART]) {
            FREED.fetch_add(1, Ordering::Relaxed);
        }
        if has_key(bytes) {
            FREED_KEYS.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

fn open(disk: &SimulatedDisk) -> (DiskForest, Pump) {
    let settings = Settings::new().segment(8 << 10).by_hand();
    let journal = DiskJournal::open_on(disk.clone(), settings).unwrap();
    let pump = Pump::begin(&journal);
    let forest = block_on(DiskForest::recover(Forest::builder(), journal)).unwrap();
    (forest, pump)
}

/// Does the journal's work on a thread of its own, while it may.
struct Pump {
    goes_on: Arc<Mutex<bool>>,
    thread: Option<JoinHandle<()>>,
}

impl Pump {
    fn begin(journal: &DiskJournal) -> Self {
        let goes_on = Arc::new(Mutex::new(true));
        let (shared, journal) = (Arc::clone(&goes_on), journal.clone());
        let thread = thread::spawn(move || {
            loop {
                let goes_on = shared.lock().unwrap();
                for work in [Work::Prepare, Work::Write, Work::Sync] {
                    journal.work(work);
                }
                if !*goes_on {
                    return;
                }
                drop(goes_on);
                thread::yield_now();
            }
        });
        let thread = Some(thread);
        Self { goes_on, thread }
    }

    /// Nothing is written while this is held.
    fn hold(&self) -> MutexGuard<'_, bool> {
        self.goes_on.lock().unwrap()
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        *self.hold() = false;
        self.thread.take().unwrap().join().unwrap();
    }
}

#[test]
fn what_was_erased_is_overwritten_wherever_it_was_on_its_way() {
    let disk = SimulatedDisk::new();
    let (forest, pump) = open(&disk);
    let tree = block_on(forest.create("t")).unwrap();
    let root = tree.view().tree().root().id();
    let put_bytes = |name: &str, bytes: &[u8]| {
        let mut edit = tree.edit();
        edit.put_erasable(root, name, bytes).unwrap();
        block_on(edit.commit().level(Level::Accepted)).unwrap();
    };
    let put = |name| put_bytes(name, SECRET);
    // From then on there is room for keys.
    put_bytes("other", b"nothing to hide");
    // The first is erased before anything of it was written.
    let held = pump.hold();
    put("first");
    {
        let mut erasing = pin!(tree.erase(root, "first"));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(erasing.as_mut().poll(&mut cx).is_pending());
        drop(held);
        block_on(erasing).unwrap();
    }
    assert_eq!(FREED.load(Ordering::Relaxed), 0, "of those on their way");
    put("second");
    drop((tree, forest, pump));
    let (forest, pump) = open(&disk);
    let tree = forest.get("t").unwrap();
    {
        let view = tree.snapshot();
        let value = forest.value(view.tree().root(), "second").unwrap();
        assert_eq!(value.bytes(), Some(&SECRET[..]));
    }
    block_on(tree.erase(root, "second")).unwrap();
    drop((tree, forest, pump));
    assert_eq!(FREED.load(Ordering::Relaxed), 0, "of those read back");
}

/// Its key is in the key file and once in memory, until it is erased; whatever holds it is moved and cloned meanwhile.
#[test]
fn no_memory_that_is_freed_has_the_key_of_what_is_erased() {
    let directory = tempfile::tempdir().unwrap();
    let forest = block_on(DiskForest::open(directory.path())).unwrap();
    let tree = block_on(forest.create("t")).unwrap();
    let root = tree.view().tree().root().id();
    let put = |name: &str| {
        let mut edit = tree.edit();
        edit.put_erasable(root, name, name.repeat(10)).unwrap();
        block_on(edit.commit()).unwrap();
    };
    put("secret");
    watch_key(directory.path());
    // The map of the keys grows, several times.
    (0..40).for_each(|number| put(&number.to_string()));
    block_on(forest.checkpoint()).unwrap();
    let view = tree.snapshot();
    let _ = forest.value(view.tree().root(), "secret").unwrap();
    drop(view);
    block_on(tree.erase(root, "secret")).unwrap();
    drop((tree, forest));
    assert_eq!(FREED_KEYS.load(Ordering::Relaxed), 0);
}

/// Looks for the first key of the key file from now on.
fn watch_key(directory: &Path) {
    let mut files = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
    let file = files.find(|file| file.file_name().to_string_lossy().ends_with(".keys"));
    let bytes = Zeroizing::new(std::fs::read(file.unwrap().path()).unwrap());
    // Behind the head of 36 bytes and the id.
    let (words, _) = bytes[52..84].as_chunks::<8>();
    for (word, known) in words.iter().zip(&KEY) {
        known.store(u64::from_le_bytes(*word), Ordering::Relaxed);
    }
}
