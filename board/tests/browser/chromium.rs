//! Chromium without a window, driven through two pipes by the DevTools protocol: messages of JSON, each with a zero
//! behind it.
//!
//! All tests of the program share one, in turns. It ends with the last of them: a Chromium whose pipes close ends by
//! itself.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

/// Far longer than anything takes that does not hang.
const LONG: Duration = Duration::from_secs(120);

/// The variable that names another browser, or none with an empty text.
const VARIABLE: &str = "WEALD_BROWSER";

/// A running Chromium.
pub(crate) struct Chromium {
    child: Child,
    to: RefCell<ChildStdin>,
    from: Receiver<Value>,
    last: Cell<u64>,
    /// What happened and nobody has waited for yet.
    happened: RefCell<VecDeque<Value>>,
    _profile: TempDir,
}

/// Runs a test with Chromium, alone; without one it says so and does nothing.
pub(crate) fn with_chromium(test: impl FnOnce(&Chromium)) {
    static SHARED: Mutex<Weak<Mutex<Chromium>>> = Mutex::new(Weak::new());
    let Some(program) = find() else {
        say_skipped();
        return;
    };
    let shared = {
        let mut shared = lock(&SHARED);
        shared.upgrade().unwrap_or_else(|| {
            let started = Arc::new(Mutex::new(Chromium::start(&program)));
            *shared = Arc::downgrade(&started);
            started
        })
    };
    // A test that failed has left its tabs, which disturb nobody.
    test(&lock(&shared));
}

/// Goes past the harness, which keeps what a test that passes prints to itself.
fn say_skipped() {
    let test = std::thread::current();
    let test = test.name().unwrap_or("a test").to_owned();
    let told = format!(
        "skipped {test}: there is no browser; install chromium, or name one in {VARIABLE}\n"
    );
    std::io::stderr().write_all(told.as_bytes()).unwrap();
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn find() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE) {
        return (!named.is_empty()).then(|| named.into());
    }
    let path = std::env::var_os("PATH")?;
    let places: Vec<_> = std::env::split_paths(&path).collect();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut all = names
        .iter()
        .flat_map(|name| places.iter().map(move |place| place.join(name)));
    all.find(|program| program.is_file())
}

impl Chromium {
    fn start(program: &Path) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let data = format!("--user-data-dir={}", profile.path().display());
        // The browser reads from descriptor 3 and writes to 4.
        let mut child = Command::new("/bin/sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null"])
            .arg(program)
            .args([
                "--headless=new",
                "--remote-debugging-pipe",
                "--no-sandbox",
                "--no-first-run",
            ])
            .args([
                // A click goes where its target was measured; a page that still scrolls smoothly has moved it.
                "--force-prefers-reduced-motion",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
            ])
            .args([
                "--disable-background-networking",
                "--disable-extensions",
                "--disable-sync",
            ])
            .args([data.as_str(), "about:blank"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let to = child.stdin.take().unwrap();
        let mut bytes = BufReader::new(child.stdout.take().unwrap());
        let (sender, from) = channel();
        std::thread::spawn(move || {
            loop {
                let mut message = Vec::new();
                let read = bytes.read_until(0, &mut message);
                if !matches!(read, Ok(length) if length > 0) {
                    return;
                }
                message.pop();
                let message = serde_json::from_slice(&message).unwrap();
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            to: RefCell::new(to),
            from,
            last: Cell::new(0),
            happened: RefCell::default(),
            _profile: profile,
        }
    }

    /// Asks the browser, or one of its tabs, for something.
    ///
    /// # Errors
    /// What it says instead.
    pub(crate) fn ask(
        &self,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<Value, String> {
        let id = self.last.get() + 1;
        self.last.set(id);
        let mut message = json!({"id": id, "method": method, "params": params});
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let mut to = self.to.borrow_mut();
        to.write_all(message.to_string().as_bytes()).unwrap();
        to.write_all(&[0]).unwrap();
        to.flush().unwrap();
        drop(to);
        loop {
            let mut message = self.receive(method);
            if message["id"] != id {
                self.happened.borrow_mut().push_back(message);
                continue;
            }
            return match message.get("error") {
                None => Ok(message["result"].take()),
                Some(error) => Err(error["message"].as_str().unwrap_or_default().to_owned()),
            };
        }
    }

    /// Waits until something has happened in a tab; returns at once if it already has. `None` if it does not happen.
    pub(crate) fn wait_for(&self, session: &str, event: &str) -> Option<Value> {
        let is_it = |it: &Value| it["sessionId"] == session && it["method"] == event;
        let mut happened = self.happened.borrow_mut();
        if let Some(at) = happened.iter().position(is_it) {
            return happened.remove(at);
        }
        loop {
            let message = self.from.recv_timeout(LONG).ok()?;
            if is_it(&message) {
                return Some(message);
            }
            happened.push_back(message);
        }
    }

    /// Forgets what has happened in a tab.
    pub(crate) fn forget(&self, session: &str) {
        self.happened
            .borrow_mut()
            .retain(|it| it["sessionId"] != session);
    }

    fn receive(&self, what: &str) -> Value {
        let received = self.from.recv_timeout(LONG);
        received.unwrap_or_else(|error| panic!("the browser does not answer to {what}: {error}"))
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
