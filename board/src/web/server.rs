//! The server: opens the boards, listens, and stops in an orderly way.

use std::io;
use std::net::SocketAddr;

use weald::JoinHandle;
use weald::forest::Forest;
use weald::forest::disk::{DiskForest, DiskJournal, OpenError, OpenForestError};
use weald::http::{Drained, ServeError};
use weald::net::TcpListener;
use weald::process::{Strategy, Supervisor, SupervisorPid};

use crate::model::{BoardError, Boards, Store};

use super::app::App;
use super::config::{Config, Place};
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

/// A board that is served. Dropped, it goes on.
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
    let store = open(&config).await?;
    let boards = Boards::of(store).await?;
    let address = config.address;
    let listening =
        TcpListener::bind(address).and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (address, listener) = listening.map_err(|error| StartError::Listen { address, error })?;
    let drain = config.drain;
    let readers = Supervisor::new(Strategy::OneForOne).limit(config.most_readers);
    let readers = readers
        .start()
        .await
        .map_err(|error| StartError::Readers(error.to_string()))?;
    let responder = Responder::new(App::new(boards.clone(), config, readers.clone()));
    let (stop, mut stopped) = weald::sync::oneshot::channel();
    let server = weald::http::serve(listener, responder)
        .drain_for(drain)
        .until(async move { stopped.receive().await });
    let ended = weald::spawn(async move { server.await });
    Ok(Running {
        address,
        boards,
        readers,
        stop,
        ended,
    })
}

async fn open(config: &Config) -> Result<Store, StartError> {
    let directory = match &config.place {
        Place::Memory => return Ok(Store::Memory(Forest::new())),
        Place::Open(store) => return Ok(store.clone()),
        Place::Directory(directory) => directory,
    };
    let journal = weald::blocking(|| DiskJournal::open(directory))?;
    let builder = Forest::builder().level(config.level);
    Ok(Store::Disk(DiskForest::recover(builder, journal).await?))
}

impl Running {
    /// Where it is served.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its boards, for what is not asked through HTTP.
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
