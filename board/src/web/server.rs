//! The server: opens the boards, listens, and stops in an orderly way.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use weald::JoinHandle;
use weald::forest::Forest;
use weald::forest::disk::{DiskForest, DiskJournal, OpenError, OpenForestError};
use weald::http::{Drained, ServeError};
use weald::net::TcpListener;
use weald::process::{Strategy, Supervisor, SupervisorPid};

use crate::model::{BoardError, Boards, Store};

use super::app::App;
use super::config::{Config, Storage};
use super::respond::Responder;

/// Why a board could not be started, or ended by itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The forest in the directory could not be opened.
    #[error("the boards cannot be opened: {0}")]
    Open(#[from] OpenForestError),
    /// The boards in it could not be read.
    #[error("the boards cannot be read: {0}")]
    Boards(#[from] BoardError),
    /// The clock of the machine is far off, and HTTP has no way to write what it says.
    #[error(
        "the clock of this machine says a time before 1970, or after the year 9999, so no answer can be dated; set the \
         clock, and start the board again"
    )]
    Clock,
    /// Nothing can listen at the address.
    #[error("nothing can listen at {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// The supervisor of the readers could not be started.
    #[error("no process can be started: {0}")]
    Readers(String),
    /// The server failed.
    #[error("the server failed: {0}")]
    Serve(#[from] ServeError),
}

/// A board that is served. It continues if this is dropped.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    boards: Boards,
    readers: SupervisorPid,
    stop: weald::sync::oneshot::Sender<()>,
    ended: JoinHandle<Result<Drained, ServeError>>,
}

impl From<OpenError> for StartError {
    fn from(error: OpenError) -> Self {
        Self::Open(error.into())
    }
}

/// Opens the boards and serves them, within a runtime of Weald. It returns when the board can be reached.
///
/// ```
/// use weald_board::{Config, serve};
///
/// weald::block_on(async {
///     let config = Config { address: "127.0.0.1:0".parse().unwrap(), ..Config::default() };
///     let board = serve(config).await?;
///     println!("http://{}", board.address());
///     let drained = board.stop().await?;
///     assert!(drained.not_stopped.is_empty());
///     Ok::<(), weald_board::StartError>(())
/// })?;
/// # Ok::<(), weald_board::StartError>(())
/// ```
///
/// # Errors
/// [`StartError`].
pub async fn serve(config: Config) -> Result<Running, StartError> {
    must_be_datable(SystemTime::now())?;
    let listening = Listening::begin(&config)?;
    let began = Instant::now();
    if let Storage::Directory(directory) = &config.storage {
        let directory = directory.display();
        tracing::info!(%directory, "opening the boards; until they are open, everything but /healthz gets a 503");
    }
    match parts(config).await {
        Ok((app, readers)) => {
            let (boards, millis) = (app.boards.clone(), began.elapsed().as_millis());
            let millis = u64::try_from(millis).unwrap_or(u64::MAX);
            tracing::info!(boards = boards.list().len(), millis, "the boards are open");
            listening.responder.open(app);
            Ok(Running {
                address: listening.address,
                boards,
                readers,
                stop: listening.stop,
                ended: listening.ended,
            })
        }
        Err(error) => {
            let _ = listening.stop.send(());
            let _ended = listening.ended.await;
            Err(error)
        }
    }
}

/// The first second that a date of HTTP cannot have, from 1970 on.
const TOO_LATE: Duration = Duration::from_secs(253_402_300_800);

/// Otherwise each answer would end in a panic of what writes its date.
fn must_be_datable(now: SystemTime) -> Result<(), StartError> {
    let since = now.duration_since(UNIX_EPOCH);
    match since.is_ok_and(|since| since < TOO_LATE) {
        true => Ok(()),
        false => Err(StartError::Clock),
    }
}

/// A server that is not open yet: clients are told to come again.
struct Listening {
    address: SocketAddr,
    responder: Responder,
    stop: weald::sync::oneshot::Sender<()>,
    ended: JoinHandle<Result<Drained, ServeError>>,
}

impl Listening {
    fn begin(config: &Config) -> Result<Self, StartError> {
        let address = config.address;
        let listening =
            TcpListener::bind(address).and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) =
            listening.map_err(|error| StartError::Listen { address, error })?;
        let responder = Responder::new(config.title.clone(), config.proxies.clone());
        let (stop, mut stopped) = weald::sync::oneshot::channel();
        let server = weald::http::serve(listener, responder.clone())
            .drain_for(config.drain)
            .until(async move { stopped.receive().await });
        let ended = weald::spawn(async move { server.await });
        Ok(Self {
            address,
            responder,
            stop,
            ended,
        })
    }
}

/// The parts that serve a board.
async fn parts(config: Config) -> Result<(App, SupervisorPid), StartError> {
    let store = open(&config).await?;
    let boards = Boards::of(store).await?;
    let readers = Supervisor::new(Strategy::OneForOne).limit(config.most_readers);
    let readers = readers
        .start()
        .await
        .map_err(|error| StartError::Readers(error.to_string()))?;
    Ok((App::new(boards, config, readers.clone()), readers))
}

async fn open(config: &Config) -> Result<Store, StartError> {
    let builder = Forest::builder().level(config.level);
    let builder = match config.clock.clone() {
        Some(clock) => builder.clock(Arc::new(clock)),
        None => builder,
    };
    let directory = match &config.storage {
        Storage::Memory => return Ok(Store::Memory(builder.build())),
        Storage::Open(store) => return Ok(store.clone()),
        Storage::Directory(directory) => directory,
    };
    let journal = weald::blocking(|| DiskJournal::open(directory))?;
    Ok(Store::Disk(DiskForest::recover(builder, journal).await?))
}

impl Running {
    /// Where it is served.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its boards, for uses beside HTTP.
    pub fn boards(&self) -> &Boards {
        &self.boards
    }

    /// Stops it: no new connections, time for the requests in flight, and then the journal is closed.
    ///
    /// # Errors
    /// [`StartError::Serve`], if the server had failed.
    pub async fn stop(self) -> Result<Drained, StartError> {
        let _ = self.stop.send(());
        // Their streams have no end of their own.
        self.readers.stop().await;
        let drained = self
            .ended
            .await
            .map_err(|_| io::Error::other("the server's job ended"));
        self.boards.close().await;
        Ok(drained.map_err(ServeError::from)??)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    fn ask(address: SocketAddr, path: &str) -> String {
        sent(address, ("GET", path), "")
    }

    fn send(address: SocketAddr, path: &str, form: &str) -> String {
        sent(address, ("POST", path), form)
    }

    fn sent(address: SocketAddr, (method, path): (&str, &str), body: &str) -> String {
        weald::block_in_place(|| {
            let mut stream = TcpStream::connect(address).unwrap();
            let length = body.len();
            let head = format!("Host: localhost\r\nConnection: close\r\nContent-Length: {length}");
            write!(stream, "{method} {path} HTTP/1.1\r\n{head}\r\n\r\n{body}").unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text.to_ascii_lowercase()
        })
    }

    #[test]
    fn before_the_boards_are_open_whoever_asks_is_told_to_come_again() {
        weald::block_on(async {
            let config = Config {
                address: "127.0.0.1:0".parse().unwrap(),
                storage: Storage::Memory,
                ..Config::default()
            };
            let listening = Listening::begin(&config).unwrap();
            assert!(ask(listening.address, "/healthz").starts_with("http/1.1 200 "));
            for (path, kind) in [
                ("/", "text/html"),
                ("/api/boards", "application/problem+json"),
            ] {
                let refused = ask(listening.address, path);
                assert!(refused.starts_with("http/1.1 503 "), "{refused}");
                for header in ["retry-after: 2\r\n", kind, "content-security-policy: "] {
                    assert!(refused.contains(header), "{refused}");
                }
            }
            let draft = "title=T&text=a+draft";
            let refused = send(listening.address, "/b/tea/write", draft);
            assert!(refused.starts_with("http/1.1 503 "), "{refused}");
            for part in ["a draft</textarea>", "action=\"/b/tea/write\""] {
                assert!(refused.contains(part), "{refused}");
            }
            let (app, readers) = parts(config).await.unwrap();
            listening.responder.open(app);
            for path in ["/healthz", "/", "/api/boards"] {
                let answered = ask(listening.address, path);
                assert!(answered.starts_with("http/1.1 200 "), "{answered}");
            }
            let _ = listening.stop.send(());
            readers.stop().await;
            listening.ended.await.unwrap().unwrap();
        });
    }

    /// A board in memory, which keeps this many versions, and a message on it that was edited or deleted; another one
    /// was written since. Then its address has taken all places for looks into the past. Returns what an undo gets.
    fn undone_without_a_look(kept: usize, (method, body): (&str, &str)) -> String {
        weald::block_on(async {
            let forest = Forest::builder().keep(kept).build();
            let config = Config {
                address: "127.0.0.1:0".parse().unwrap(),
                storage: Storage::Open(Store::Memory(forest)),
                ..Config::default()
            };
            let listening = Listening::begin(&config).unwrap();
            let address = listening.address;
            let (app, readers) = parts(config).await.unwrap();
            listening.responder.open(app.clone());
            let request = |line: &str, body: &str| {
                let length = body.len();
                let head = format!(
                    "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
                     Authorization: Bearer the key of Ada, long enough\r\nIf-Match: *\r\nContent-Length: {length}\r\n\r\n"
                );
                weald::block_in_place(|| {
                    let mut stream = TcpStream::connect(address).unwrap();
                    stream.write_all((head + body).as_bytes()).unwrap();
                    let mut text = String::new();
                    stream.read_to_string(&mut text).unwrap();
                    text
                })
            };
            request("POST /api/boards", "{\"title\": \"Tea\"}");
            let said = "{\"title\": \"T\", \"text\": \"one\"}";
            let written = request("POST /api/boards/tea/messages", said);
            let mut lines = written.lines().filter_map(|line| line.split_once(": "));
            let place = lines.find(|(name, _)| name.eq_ignore_ascii_case("location"));
            let place = place.unwrap().1;
            let changed = request(&format!("{method} {place}"), body);
            assert!(changed.starts_with("HTTP/1.1 200 "), "{changed}");
            request("POST /api/boards/tea/messages", said);
            let here = super::super::limiter::network("127.0.0.1".parse().unwrap());
            let _looks: Vec<_> = std::iter::from_fn(|| app.looks.take(here).ok()).collect();
            let undone = request(&format!("POST {place}/undo"), "");
            let _ = listening.stop.send(());
            readers.stop().await;
            listening.ended.await.unwrap().unwrap();
            undone
        })
    }

    #[test]
    fn an_undo_takes_a_place_from_looks_into_the_past_only_if_it_needs_one() {
        let edit = ("PUT", "{\"title\": \"T\", \"text\": \"two\"}");
        let deletion = ("DELETE", "");
        for (kept, change, status) in [(1_000, edit, 200), (1, deletion, 200), (1, edit, 429)] {
            let undone = undone_without_a_look(kept, change);
            let is_so = undone.starts_with(&format!("HTTP/1.1 {status} "));
            assert!(is_so, "{kept} versions, {change:?}: {undone}");
        }
    }

    #[test]
    fn a_clock_whose_time_no_answer_can_have_is_refused_at_the_start() {
        for time in [UNIX_EPOCH, UNIX_EPOCH + TOO_LATE - Duration::from_nanos(1)] {
            assert!(must_be_datable(time).is_ok(), "{time:?}");
        }
        for time in [UNIX_EPOCH - Duration::from_nanos(1), UNIX_EPOCH + TOO_LATE] {
            let refused = must_be_datable(time).unwrap_err().to_string();
            assert!(refused.contains("set the clock"), "{refused}");
        }
    }
}
