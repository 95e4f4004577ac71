//! Which request a connection works on, noted for reports. The job writes a note for each request, and hardly anybody
//! ever reads one. So writing takes no lock, and touches no reference count of the parsed request. A request that
//! repeats the last one is not even written.
//!
//! The words are in a [`Seqlock`]. A request whose method is not one of the usual ones, or whose target is long or
//! absolute, is kept behind a lock instead.
//!
//! Only the connection's job writes. Any thread reads.

use std::sync::{Mutex, MutexGuard, PoisonError};

use http::{Method, Uri};
use weald_sync::Seqlock;

const WORD: usize = size_of::<u64>();
/// The most words of a target that are noted without a lock, and the most bytes.
const TARGET: usize = 12;
const MOST: usize = TARGET * WORD;

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

/// Whether a request is another one than the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noted {
    /// Its method and its target are those of the last request.
    Again,
    /// It may be another one.
    Anew,
}

/// The last request of a connection.
#[derive(Debug)]
pub(crate) struct RequestNote {
    /// The method's number, and the target's length above it; then the target, filled up with zeros to a whole word.
    words: Seqlock<{ 1 + TARGET }>,
    kept: Mutex<Option<(Method, Uri)>>,
}

/// The first word.
fn head(number: usize, length: usize) -> u64 {
    (number | length << 8) as u64
}

impl RequestNote {
    pub(crate) fn new() -> RequestNote {
        let mut words = [0; 1 + TARGET];
        words[0] = head(NOTHING, 0);
        RequestNote {
            words: Seqlock::new(words),
            kept: Mutex::new(None),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Method, Uri)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request.
    pub(crate) fn write(&self, method: &Method, target: &Uri) -> Noted {
        let number = METHODS.iter().position(|usual| usual == method);
        let short = target
            .path_and_query()
            .filter(|_| target.authority().is_none() && target.scheme().is_none())
            .map(|target| target.as_str().as_bytes())
            .filter(|target| target.len() <= MOST);
        let (Some(number), Some(target)) = (number, short) else {
            self.keep(method, target);
            return Noted::Anew;
        };
        let mut words = [0; 1 + TARGET];
        words[0] = head(number, target.len());
        let (whole, rest) = target.as_chunks::<WORD>();
        for (place, word) in words[1..].iter_mut().zip(whole) {
            *place = u64::from_ne_bytes(*word);
        }
        if !rest.is_empty() {
            let byte = |at: usize| rest.get(at).copied().unwrap_or(0);
            words[1 + whole.len()] = u64::from_ne_bytes(std::array::from_fn(byte));
        }
        let words = &words[..1 + target.len().div_ceil(WORD)];
        if self.words.begins_with(words) {
            return Noted::Again;
        }
        self.let_go();
        self.words.write(words);
        Noted::Anew
    }

    #[cold]
    fn keep(&self, method: &Method, target: &Uri) {
        let former = self.lock().replace((method.clone(), target.clone()));
        drop(former);
        self.words.write(&[head(KEPT, 0)]);
    }

    /// A request that is kept would keep the buffer from which it was parsed.
    fn let_go(&self) {
        if self.words.begins_with(&[head(KEPT, 0)]) {
            let former = self.lock().take();
            drop(former);
        }
    }

    /// There is no request any more.
    pub(crate) fn clear(&self) {
        self.let_go();
        self.words.write(&[head(NOTHING, 0)]);
    }

    /// The last request, if there is one.
    pub(crate) fn read(&self) -> Option<(Method, Uri)> {
        let [head, words @ ..] = self.words.read();
        let [number, length @ ..] = head.to_le_bytes();
        if usize::from(number) == KEPT {
            return self.lock().clone();
        }
        let method = METHODS.get(usize::from(number))?;
        let target = words.map(u64::to_ne_bytes);
        let target = target.as_flattened().get(..usize::from(length[0]))?;
        Some((method.clone(), Uri::try_from(target).ok()?))
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
            assert_eq!(
                note.write(&written.0, &written.1),
                Noted::Anew,
                "{method} {target}"
            );
            assert_eq!(note.read(), Some(written), "{method} {target}");
        }
        assert_eq!(*note.lock(), None, "the long target is not kept any more");
        note.write(&Method::GET, &long.parse().unwrap());
        note.clear();
        assert_eq!(note.read(), None);
        assert_eq!(*note.lock(), None, "nothing is kept");
    }

    #[test]
    fn a_request_that_repeats_the_last_one_is_told_from_others() {
        let note = RequestNote::new();
        let mut last = None;
        for (method, target, noted) in [
            ("GET", "/", Noted::Anew),
            ("GET", "/", Noted::Again),
            ("HEAD", "/", Noted::Anew),
            ("GET", "/a", Noted::Anew),
            ("GET", "/a?", Noted::Anew),
            ("GET", "/a?", Noted::Again),
            ("GET", "/a/12345", Noted::Anew),
            ("GET", "/a/12346", Noted::Anew),
            ("GET", "/a/12346", Noted::Again),
            ("GET", "http://x/a/12346", Noted::Anew),
            ("GET", "/a/12346", Noted::Anew),
        ] {
            let next = request(method, target);
            assert_eq!(
                note.write(&next.0, &next.1),
                noted,
                "{target} after {last:?}"
            );
            assert_eq!(note.read().as_ref(), Some(&next));
            last = Some(next);
        }
        note.clear();
        let next = last.unwrap();
        assert_eq!(note.write(&next.0, &next.1), Noted::Anew);
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
