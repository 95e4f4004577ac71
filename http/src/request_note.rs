//! Which request a connection works on, noted for reports: the job writes it for each request, and hardly anybody ever
//! reads it. So writing takes no lock and touches no count, which the parsed request shares with its parts.
//!
//! A sequence lock, all of whose words are atomic, so that a read that a write overtakes is only repeated (H.-J. Boehm,
//! "Can seqlocks get along with programming language memory models?", 2012). A request whose method is not one of the
//! usual ones, or whose target is long or absolute, is kept behind a lock instead.
//!
//! Only the connection's job writes. Any thread reads.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
};

use http::{Method, Uri};

/// The most bytes of a target that are noted without a lock.
const MOST: usize = 96;
const WORD: usize = size_of::<u64>();

/// The usual methods, by the numbers that stand for them.
const METHODS: [Method; 9] = [
    Method::GET,
    Method::POST,
    Method::PUT,
    Method::DELETE,
    Method::HEAD,
    Method::OPTIONS,
    Method::CONNECT,
    Method::PATCH,
    Method::TRACE,
];
/// In place of a method's number: there is no request.
const NOTHING: usize = 0xfe;
/// In place of a method's number: the request is behind the lock.
const KEPT: usize = 0xff;

/// The last request of a connection.
#[derive(Debug)]
pub(crate) struct RequestNote {
    /// Odd while the words below are written.
    version: AtomicU32,
    /// The method's number, and the target's length above it.
    what: AtomicUsize,
    target: [AtomicU64; MOST / WORD],
    kept: Mutex<Option<(Method, Uri)>>,
}

impl RequestNote {
    pub(crate) fn new() -> RequestNote {
        RequestNote {
            version: AtomicU32::new(0),
            what: AtomicUsize::new(NOTHING),
            target: [const { AtomicU64::new(0) }; MOST / WORD],
            kept: Mutex::new(None),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Method, Uri)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request.
    pub(crate) fn write(&self, method: &Method, target: &Uri) {
        let number = METHODS.iter().position(|usual| usual == method);
        let short = target
            .path_and_query()
            .filter(|_| target.authority().is_none() && target.scheme().is_none())
            .map(|target| target.as_str().as_bytes())
            .filter(|target| target.len() <= MOST);
        match (number, short) {
            (Some(number), Some(target)) => {
                self.let_go();
                self.write_words(number | target.len() << 8, target);
            }
            _ => self.keep(method, target),
        }
    }

    #[cold]
    fn keep(&self, method: &Method, target: &Uri) {
        let former = self.lock().replace((method.clone(), target.clone()));
        drop(former);
        self.write_words(KEPT, &[]);
    }

    /// A request that is kept would keep the buffer from which it was parsed.
    fn let_go(&self) {
        if self.what.load(Ordering::Relaxed) == KEPT {
            let former = self.lock().take();
            drop(former);
        }
    }

    /// There is no request any more.
    pub(crate) fn clear(&self) {
        self.let_go();
        self.write_words(NOTHING, &[]);
    }

    fn write_words(&self, what: usize, target: &[u8]) {
        let version = self.version.load(Ordering::Relaxed);
        self.version
            .store(version.wrapping_add(1), Ordering::Relaxed);
        // Release: a reader that sees a word below sees the odd version at its second look, which follows its fence.
        fence(Ordering::Release);
        self.what.store(what, Ordering::Relaxed);
        let (words, rest) = target.as_chunks::<WORD>();
        for (place, word) in self.target.iter().zip(words) {
            place.store(u64::from_ne_bytes(*word), Ordering::Relaxed);
        }
        if !rest.is_empty() {
            let mut word = [0; WORD];
            word[..rest.len()].copy_from_slice(rest);
            self.target[words.len()].store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
        // Release: pairs with the first look of a reader, which then sees all words.
        self.version
            .store(version.wrapping_add(2), Ordering::Release);
    }

    /// The last request, if there is one.
    pub(crate) fn read(&self) -> Option<(Method, Uri)> {
        loop {
            // Acquire: pairs with the end of a write.
            let before = self.version.load(Ordering::Acquire);
            let what = self.what.load(Ordering::Relaxed);
            let mut target = [0; MOST];
            for (word, place) in target
                .as_chunks_mut::<WORD>()
                .0
                .iter_mut()
                .zip(&self.target)
            {
                *word = place.load(Ordering::Relaxed).to_ne_bytes();
            }
            // Acquire: pairs with the fence of a write that has overtaken this read.
            fence(Ordering::Acquire);
            if before % 2 == 1 || self.version.load(Ordering::Relaxed) != before {
                // The writer may have lost its processor.
                std::thread::yield_now();
                continue;
            }
            let (number, length) = (what & 0xff, what >> 8);
            return match METHODS.get(number) {
                Some(method) => {
                    let target = Uri::try_from(&target[..length]).ok()?;
                    Some((method.clone(), target))
                }
                None if number == KEPT => self.lock().clone(),
                None => None,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    };

    use super::*;

    fn request(method: &str, target: &str) -> (Method, Uri) {
        (method.parse().unwrap(), target.parse().unwrap())
    }

    #[test]
    fn every_request_is_read_as_it_was_written() {
        let note = RequestNote::new();
        assert_eq!(note.read(), None);
        let long = format!("/{}?query", "x".repeat(MOST));
        let full = format!("/{}", "y".repeat(MOST - 1));
        for (method, target) in [
            ("GET", "/"),
            ("POST", "/12345678"),
            ("OPTIONS", "*"),
            ("PATCH", "/a/b?c=d&e"),
            ("PURGE", "/cache"),
            ("GET", "http://there.example/x"),
            ("CONNECT", "there.example:443"),
            ("DELETE", &long),
            ("PUT", &full),
            ("HEAD", "/1234567"),
        ] {
            let written = request(method, target);
            note.write(&written.0, &written.1);
            assert_eq!(note.read(), Some(written), "{method} {target}");
        }
        assert_eq!(*note.lock(), None, "the long target is not kept any more");
        note.write(&Method::GET, &long.parse().unwrap());
        note.clear();
        assert_eq!(note.read(), None);
        assert_eq!(*note.lock(), None, "nothing is kept");
    }

    /// Each target repeats one letter, as often as the letter's number says.
    #[test]
    fn a_reader_never_finds_parts_of_two_requests() {
        let targets: Vec<(char, Uri)> = ('a'..='z')
            .zip((1..).map(|count| 3 * count))
            .map(|(letter, count)| {
                let target = format!("/{}", letter.to_string().repeat(count));
                (letter, target.parse().unwrap())
            })
            .collect();
        let note = Arc::new(RequestNote::new());
        let is_over = Arc::new(AtomicBool::new(false));
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let (note, is_over) = (note.clone(), is_over.clone());
                let targets = targets.clone();
                std::thread::spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        if let Some((method, target)) = note.read() {
                            let letter = target.path().chars().nth(1).unwrap();
                            assert!(targets.contains(&(letter, target)), "torn");
                            assert_eq!(method == Method::GET, letter < 'n', "torn");
                        }
                    }
                })
            })
            .collect();
        for _ in 0..20_000 {
            for (letter, target) in &targets {
                let method = if *letter < 'n' {
                    Method::GET
                } else {
                    Method::PUT
                };
                note.write(&method, target);
            }
        }
        is_over.store(true, Ordering::Relaxed);
        readers
            .into_iter()
            .for_each(|reader| reader.join().unwrap());
    }
}
