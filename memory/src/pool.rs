//! The slabs: free blocks by size, a few of them with each thread and the rest in a depot.
//!
//! - A block belongs to the class of its size, and goes back to the free blocks of that class.
//! - A thread keeps at most two batches of free blocks for each class, so that one that takes and frees at the
//!   boundary of a batch does not go to the depot each time (Bonwick and Adams, "Magazines and Vmem", 2001).
//! - Free blocks are listed beside the blocks and not in them: passing a batch on touches no block.
//! - When the free blocks of a class have doubled, and are half of all, the slabs whose blocks are all free are given
//!   back. If they are wanted again soon, or if there are none, the class waits for more free blocks the next time. So
//!   a program that takes and frees in turns does not look through all blocks, or call the allocator, in each turn.
//!
//! **Safety.** A block that [`take`] returns is a part of a slab that nobody else uses until it is given to
//! [`free`], and has the size of its class: slabs are cut into such parts, each part is in one list, and only the
//! lists of its class pass it on. A slab is given back when all its parts are in a list that only one thread has.
//! With `--cfg weald_plain_alloc` every block is allocated on its own, so that sanitizers see its end.

#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::{Cell, UnsafeCell};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sizes are rounded up to these steps.
const STEP: usize = 8;
/// Larger blocks come from the program's allocator.
const LARGEST: usize = 640;
const CLASSES: usize = LARGEST / STEP;
/// How many free blocks are passed on together.
const BATCH: usize = 32;
/// Somewhat less than a power of two: some allocators add a few bytes and take the next larger size for the sum.
const SLAB: usize = (1 << 16) - 128;
const SLAB_LAYOUT: Layout = match Layout::from_size_align(SLAB, 16) {
    Ok(layout) => layout,
    Err(_) => panic!("the alignment is a power of two"),
};
/// The free blocks of a class for which looking for free slabs may pay, in bytes.
const WORTH_TRIMMING: usize = 1 << 20;
/// By how much that bound is multiplied at most, after slabs were given back in vain.
const LARGEST_FACTOR: usize = 64;

type Block = NonNull<u8>;

/// The free blocks of one class and one thread.
struct Magazine {
    /// It has no room in a thread that has not used it yet, or whose end has come.
    loaded: Vec<Block>,
    spare: Vec<Block>,
    uncut: Uncut,
}

/// The part of a slab that was never in use.
struct Uncut {
    from: *mut u8,
    /// In blocks.
    left: usize,
}

/// The free blocks of one class that no thread has, and all slabs of the class.
struct Depot {
    batches: Vec<Vec<Block>>,
    /// How many blocks are in the batches.
    free: usize,
    uncut: Vec<Uncut>,
    /// In the order of their addresses.
    slabs: Vec<Block>,
    /// The number of free blocks at which to look for free slabs.
    trim_at: usize,
    /// How many slabs were given back, and how many were taken since then.
    given_back: usize,
    taken: usize,
    /// How many times [`WORTH_TRIMMING`] must be free.
    factor: usize,
}

// SAFETY: the pointers are owned by the owner of the list; see the head of the file.
unsafe impl Send for Depot {}

static DEPOTS: [Mutex<Depot>; CLASSES] = [const { Mutex::new(Depot::NEW) }; CLASSES];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    New,
    Used,
    Ended,
}

thread_local! {
    // Without a destructor, so that an access is one load from the thread's base register.
    static MAGAZINES: ManuallyDrop<UnsafeCell<[Magazine; CLASSES]>> = const {
        ManuallyDrop::new(UnsafeCell::new([const { Magazine::NEW }; CLASSES]))
    };
    static STAGE: Cell<Stage> = const { Cell::new(Stage::New) };
    static AT_EXIT: AtExit = const { AtExit };
}

/// Leaves the free blocks of an ending thread to others.
struct AtExit;

impl Drop for AtExit {
    fn drop(&mut self) {
        STAGE.set(Stage::Ended);
        (0..CLASSES).for_each(leave);
    }
}

/// A block for a value of this layout.
#[inline(always)]
pub(crate) fn take(layout: Layout) -> Block {
    match class_of(layout) {
        Some(class) => take_of(class),
        None => take_large(layout),
    }
}

// Not inlined, like `free_of`: code that waits may continue on another thread, and must not keep the address of this
// thread's magazines.
#[inline(never)]
fn take_of(class: usize) -> Block {
    match with(class, |magazine| magazine.loaded.pop()) {
        Some(block) => block,
        None => refill(class),
    }
}

/// Gives back a block.
///
/// # Safety
/// It came from [`take`] with the same layout, and nobody uses it any more.
#[inline(always)]
pub(crate) unsafe fn free(block: Block, layout: Layout) {
    let Some(class) = class_of(layout) else {
        // SAFETY: as the caller promises; a block without a class came from the allocator.
        return unsafe { dealloc(block.as_ptr(), layout) };
    };
    free_of(class, block);
}

#[inline(never)]
fn free_of(class: usize, block: Block) {
    let is_kept = with(class, |magazine| {
        let has_room = magazine.loaded.len() < magazine.loaded.capacity();
        if has_room {
            magazine.loaded.push(block);
        }
        has_room
    });
    if !is_kept {
        make_room(class, block);
    }
}

/// The class of a block, unless it comes from the program's allocator.
#[inline(always)]
fn class_of(layout: Layout) -> Option<usize> {
    // A slab is aligned to 16, so if the size of its blocks is a multiple of that, they are, too.
    let is_aligned =
        layout.align() <= STEP || layout.align() == 16 && layout.size().is_multiple_of(16);
    let is_pooled = layout.size() <= LARGEST && is_aligned && layout.size() > 0;
    (is_pooled && !cfg!(weald_plain_alloc)).then(|| (layout.size() - 1) / STEP)
}

fn size_of_class(class: usize) -> usize {
    (class + 1) * STEP
}

/// Runs `act` on the calling thread's magazine. `act` may not come back to this function.
#[inline(always)]
fn with<R>(class: usize, act: impl FnOnce(&mut Magazine) -> R) -> R {
    MAGAZINES.with(|magazines| {
        // SAFETY: only this thread has the magazines, and `act` does not come back here while it has one: every
        // call in this file passes a closure that calls nothing but methods of `Vec` and of `std::mem`.
        let magazines = unsafe { &mut *magazines.get() };
        act(&mut magazines[class])
    })
}

#[cold]
fn take_large(layout: Layout) -> Block {
    assert!(layout.size() > 0, "a block has a counter");
    // SAFETY: the size is not zero.
    let block = unsafe { alloc(layout) };
    NonNull::new(block).unwrap_or_else(|| handle_alloc_error(layout))
}

/// A block for a thread whose loaded batch is empty.
#[cold]
#[inline(never)]
fn refill(class: usize) -> Block {
    if !begin() {
        return lock(class).take_one(class);
    }
    let spare = with(class, |magazine| {
        std::mem::swap(&mut magazine.loaded, &mut magazine.spare);
        magazine.loaded.pop()
    });
    if let Some(block) = spare {
        return block;
    }
    let (mut batch, mut uncut) = with(class, |magazine| {
        let uncut = std::mem::replace(&mut magazine.uncut, Uncut::NOTHING);
        (std::mem::take(&mut magazine.loaded), uncut)
    });
    let mut depot = lock(class);
    if let Some(full) = depot.batches.pop() {
        depot.free -= full.len();
        batch = full;
    } else if uncut.left == 0 {
        uncut = depot.take_uncut(class);
    }
    drop(depot);
    batch.reserve_exact(BATCH.saturating_sub(batch.len()));
    if batch.is_empty() {
        uncut.cut(size_of_class(class), &mut batch);
    }
    let block = batch.pop();
    with(class, |magazine| {
        magazine.loaded = batch;
        magazine.uncut = uncut;
    });
    block.expect("a slab has room for a block, and a batch in the depot has one")
}

/// Takes back a block from a thread whose loaded batch is full.
#[cold]
#[inline(never)]
fn make_room(class: usize, block: Block) {
    if !begin() {
        return lock(class).add(vec![block]);
    }
    let full = with(class, |magazine| {
        std::mem::swap(&mut magazine.loaded, &mut magazine.spare);
        let is_full = magazine.loaded.len() >= BATCH;
        let full = is_full.then(|| std::mem::take(&mut magazine.loaded));
        let room = BATCH.saturating_sub(magazine.loaded.len());
        magazine.loaded.reserve_exact(room.max(1));
        magazine.loaded.push(block);
        full
    });
    if let Some(full) = full {
        let mut depot = lock(class);
        depot.add(full);
        let is_time = depot.is_worth_trimming(class);
        drop(depot);
        if is_time {
            trim_class(class);
        }
    }
}

/// Makes sure that the thread's blocks are left to others at its end; false if that has come
/// already.
fn begin() -> bool {
    if STAGE.get() == Stage::New {
        STAGE.set(Stage::Used);
        if AT_EXIT.try_with(|_| ()).is_err() {
            STAGE.set(Stage::Ended);
        }
    }
    STAGE.get() == Stage::Used
}

/// Gives back to the program's allocator each slab that has no block in use and no block that is free with a thread.
///
/// Slabs are given back without this call, too, but only when there are many. The call takes time in proportion to
/// the free blocks.
///
/// ```
/// # use weald_memory::{Shared, trim};
/// # drop(Shared::new([0_u64; 20]));
/// trim();
/// ```
pub fn trim() {
    (0..CLASSES).for_each(|class| {
        if STAGE.get() == Stage::Used {
            leave(class);
        }
        trim_class(class);
    });
}

/// Leaves the free blocks of this thread to others.
fn leave(class: usize) {
    let left = with(class, |magazine| std::mem::replace(magazine, Magazine::NEW));
    lock(class).take_over(left);
}

/// Frees the slabs of a class that nobody uses. Other threads may take blocks of the class meanwhile.
#[cold]
fn trim_class(class: usize) {
    let size = size_of_class(class);
    let mut depot = lock(class);
    depot.free = 0;
    let batches = std::mem::take(&mut depot.batches);
    let (mut uncut, slabs) = (std::mem::take(&mut depot.uncut), depot.slabs.clone());
    drop(depot);
    let at = |part: usize| slabs.partition_point(|slab| slab.addr().get() <= part) - 1;
    let mut unused = vec![0; slabs.len()];
    for block in batches.iter().flatten() {
        unused[at(block.addr().get())] += 1;
    }
    for uncut in &uncut {
        unused[at(uncut.from.addr())] += uncut.left;
    }
    let is_used = |part: usize| unused[at(part)] != SLAB / size;
    let is_empty = |slab: &Block| !is_used(slab.addr().get());
    // Others wait for the depot, so what grows with the number of blocks or slabs is done before and behind its lock.
    let mut used = batches.concat();
    used.retain(|block| is_used(block.addr().get()));
    let mut batches: Vec<_> = used.chunks(BATCH).map(<[_]>::to_vec).collect();
    uncut.retain(|uncut| is_used(uncut.from.addr()));
    let empty: Vec<_> = slabs.iter().copied().filter(is_empty).collect();
    let mut depot = lock(class);
    depot.free += used.len();
    // Few have come meanwhile.
    batches.append(&mut depot.batches);
    uncut.append(&mut depot.uncut);
    (depot.batches, depot.uncut) = (batches, uncut);
    depot.learn(empty.len());
    depot.trim_at = 2 * depot.free + depot.factor * WORTH_TRIMMING / size;
    let slabs = &mut depot.slabs;
    slabs.retain(|slab| empty.binary_search(slab).is_err());
    drop(depot);
    for slab in empty {
        // SAFETY: it was allocated with this layout, and all its parts were in lists that only this function has.
        unsafe { dealloc(slab.as_ptr(), SLAB_LAYOUT) };
    }
}

fn lock(class: usize) -> MutexGuard<'static, Depot> {
    // A panic inside leaves the lists whole: at worst blocks are missing from them.
    DEPOTS[class].lock().unwrap_or_else(PoisonError::into_inner)
}

impl Magazine {
    const NEW: Self = Self {
        loaded: Vec::new(),
        spare: Vec::new(),
        uncut: Uncut::NOTHING,
    };
}

impl Uncut {
    const NOTHING: Self = Self {
        from: std::ptr::null_mut(),
        left: 0,
    };

    /// Moves the next parts to an empty batch, so that the first of them is taken first.
    fn cut(&mut self, size: usize, batch: &mut Vec<Block>) {
        let count = self.left.min(BATCH);
        let parts = (0..count).rev();
        batch.extend(parts.filter_map(|part| NonNull::new(self.from.wrapping_add(part * size))));
        self.left -= count;
        // The rest begins within the slab, or at its end.
        self.from = self.from.wrapping_add(count * size);
    }
}

impl Depot {
    const NEW: Self = Self {
        batches: Vec::new(),
        free: 0,
        uncut: Vec::new(),
        slabs: Vec::new(),
        trim_at: usize::MAX,
        given_back: 0,
        taken: 0,
        factor: 1,
    };

    /// Whether so much is free that some slabs may be free as a whole.
    fn is_worth_trimming(&self, class: usize) -> bool {
        let all = self.slabs.len() * (SLAB / size_of_class(class));
        self.free >= self.trim_at && self.free >= all / 2
    }

    /// Adjusts the bound by what became of the slabs that were given back before, and by what can be given
    /// back now.
    fn learn(&mut self, unused: usize) {
        let was_in_vain = self.given_back > 0 && 2 * self.taken >= self.given_back;
        if was_in_vain || unused == 0 {
            self.factor = (2 * self.factor).min(LARGEST_FACTOR);
        } else if self.taken > 0 {
            self.factor = (self.factor / 2).max(1);
        }
        if self.taken > 0 {
            (self.given_back, self.taken) = (0, 0);
        }
        self.given_back += unused;
    }

    fn add(&mut self, batch: Vec<Block>) {
        if !batch.is_empty() {
            self.free += batch.len();
            self.batches.push(batch);
        }
    }

    /// Takes over what a thread had.
    fn take_over(&mut self, magazine: Magazine) {
        self.add(magazine.loaded);
        self.add(magazine.spare);
        if magazine.uncut.left > 0 {
            self.uncut.push(magazine.uncut);
        }
    }

    /// One block, for a thread that can have no magazines.
    fn take_one(&mut self, class: usize) -> Block {
        if let Some(mut batch) = self.batches.pop() {
            self.free -= batch.len();
            let block = batch.pop();
            self.add(batch);
            return block.expect("a batch in the depot has a block");
        }
        let (mut uncut, mut batch) = (self.take_uncut(class), Vec::new());
        uncut.cut(size_of_class(class), &mut batch);
        let block = batch.pop();
        self.add(batch);
        if uncut.left > 0 {
            self.uncut.push(uncut);
        }
        block.expect("a slab has room for a block")
    }

    /// A slab, or the rest of one, with at least one part.
    fn take_uncut(&mut self, class: usize) -> Uncut {
        if let Some(uncut) = self.uncut.pop() {
            return uncut;
        }
        // SAFETY: the size is not zero.
        let slab = unsafe { alloc(SLAB_LAYOUT) };
        let slab = NonNull::new(slab).unwrap_or_else(|| handle_alloc_error(SLAB_LAYOUT));
        let at = self.slabs.partition_point(|other| *other < slab);
        self.slabs.insert(at, slab);
        self.taken += 1;
        if self.trim_at == usize::MAX {
            self.trim_at = WORTH_TRIMMING / size_of_class(class);
        }
        Uncut {
            from: slab.as_ptr(),
            left: SLAB / size_of_class(class),
        }
    }
}

#[cfg(all(test, not(weald_plain_alloc)))]
mod tests;
