//! A sequence lock: a note of some words, which one writer changes often and which readers read rarely.
//!
//! All words are atomic, so that a read that a write overtakes is only repeated (H.-J. Boehm, "Can seqlocks get along
//! with programming language memory models?", 2012).
//!
//! - The version is odd while words are written. One write adds two.
//! - A reader that sees a word of a write sees at its second look that the version has changed: the write's fence comes
//!   before its words, and the reader's fence after it has read them.
//! - A reader whose first look sees the version at the end of a write sees all words of that write.

use crate::sys::{AtomicU32, AtomicU64, Ordering, fence, relax};

/// A fixed number of words, which are read as they were written together. It is for a note that is written often and
/// hardly ever read: a write costs plain stores and waits for nobody, and a read waits for a write that is under way.
///
/// One thread at a time writes. If several do, readers may find parts of two writes, or wait for long; nothing else
/// happens.
///
/// ```
/// let note = weald::sync::Seqlock::new([0, 0]);
/// note.write(&[1, 10]);
/// assert_eq!(note.read(), [1, 10]);
/// // The words that are not given stay as they are.
/// note.write(&[2]);
/// assert_eq!(note.read(), [2, 10]);
/// assert!(note.begins_with(&[2]));
/// ```
#[derive(Debug)]
pub struct Seqlock<const WORDS: usize> {
    /// Odd while the words below are written.
    version: AtomicU32,
    words: [AtomicU64; WORDS],
}

impl<const WORDS: usize> Seqlock<WORDS> {
    /// A note with these words.
    pub fn new(words: [u64; WORDS]) -> Seqlock<WORDS> {
        Seqlock {
            version: AtomicU32::new(0),
            words: words.map(AtomicU64::new),
        }
    }

    /// Writes the first words. Only the writer may call this. Never waits.
    ///
    /// # Panics
    /// If there are more than the note has.
    #[inline]
    pub fn write(&self, words: &[u64]) {
        let places = &self.words[..words.len()];
        let version = self.version.load(Ordering::Relaxed);
        self.version
            .store(version.wrapping_add(1), Ordering::Relaxed);
        // Release: a reader that sees a word below sees the odd version at its second look, which follows its fence.
        fence(Ordering::Release);
        for (place, word) in places.iter().zip(words) {
            place.store(*word, Ordering::Relaxed);
        }
        // Release: pairs with the first look of a reader, which then sees all words.
        self.version
            .store(version.wrapping_add(2), Ordering::Release);
    }

    /// Whether the first words are these. Only the writer may ask: others might see parts of two writes.
    ///
    /// # Panics
    /// If there are more than the note has.
    #[inline]
    pub fn begins_with(&self, words: &[u64]) -> bool {
        let mut places = self.words[..words.len()].iter().zip(words);
        places.all(|(place, word)| place.load(Ordering::Relaxed) == *word)
    }

    /// The words. May be called by any thread. While a write is under way, it blocks the thread; that lasts some
    /// nanoseconds, unless the writer lost its processor.
    pub fn read(&self) -> [u64; WORDS] {
        let mut round = 0;
        loop {
            // Acquire: pairs with the end of a write.
            let before = self.version.load(Ordering::Acquire);
            let words = self
                .words
                .each_ref()
                .map(|word| word.load(Ordering::Relaxed));
            // Acquire: pairs with the fence of a write that has overtaken this read.
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == before {
                return words;
            }
            relax(&mut round);
        }
    }
}
