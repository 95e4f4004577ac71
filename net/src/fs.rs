//! Files, without blocking a worker: each call is an offloaded call of `std::fs`.
//!
//! The system reports no readiness for files, so every call runs on a blocking thread. The handoff costs some ten
//! microseconds: read and write in large pieces. Buffers are passed by value, because a call that has started cannot
//! be cancelled: if its future is dropped, the call still runs to its end.
//!
//! A FIFO or a terminal is opened on a thread, too, because opening a FIFO waits for its other end. It is then read and
//! written through the reactor, and so holds no thread. For streams of it see [`ReadEnd`](crate::ReadEnd).
//!
//! As many calls run at once as there may be [blocking threads](weald_kernel::Builder::blocking_threads); the others
//! wait for their turn. A call that has held its thread for 10 ms does not count while others wait, so calls that never
//! return stop no other. There is a bound of their own for them
//! ([`held_operations`](weald_kernel::Builder::held_operations)). Beyond it a call that has waited for a second, while
//! none returned, fails with [`ResourceBusy`](io::ErrorKind::ResourceBusy), which contains a
//! [`NoTurn`](weald_kernel::NoTurn). A call that has not returned for a second is reported, with its path and the job.

use std::{
    fs::{self, DirEntry, Metadata},
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use weald_kernel::{OperationName, offload_operation};

pub use crate::file::File;
use crate::file::OpenedFile;

/// Calls `act` with an owned path, on a thread that may block. `name` is how reports call it.
async fn with_path<R: Send + 'static>(
    name: &'static str,
    path: impl AsRef<Path>,
    act: impl FnOnce(&Path) -> io::Result<R> + Send + 'static,
) -> io::Result<R> {
    let path: Arc<Path> = path.as_ref().into();
    let name = OperationName::file(name, path.clone());
    offload_operation(name, move || act(&path)).await
}

/// What a whole file turned out to be.
enum Whole {
    Bytes(Vec<u8>),
    /// A FIFO or a terminal, to be read through the reactor.
    Stream(OpenedFile),
}

/// Reads the whole file.
///
/// # Errors
/// Errors from the operating system. Fails if the runtime shuts down, as all other functions do.
pub async fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let path: Arc<Path> = path.as_ref().into();
    let opened = path.clone();
    let whole = with_path("reading", &path, move |_path| {
        let mut opened = OpenedFile::of(fs::File::open(&opened)?, opened)?;
        if opened.may_wait {
            return Ok(Whole::Stream(opened));
        }
        let mut bytes = Vec::new();
        opened.file.read_to_end(&mut bytes)?;
        Ok(Whole::Bytes(bytes))
    });
    match whole.await? {
        Whole::Bytes(bytes) => Ok(bytes),
        Whole::Stream(opened) => opened.watch()?.read_to_end().await,
    }
}

/// Reads the whole file as text.
///
/// # Errors
/// Errors from the operating system; [`InvalidData`](io::ErrorKind::InvalidData) if the file is not UTF-8.
pub async fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    let text = String::from_utf8(read(path).await?);
    text.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Replaces the contents of the file by `bytes`. Not atomic: a loss of power may leave a part.
///
/// # Errors
/// Errors from the operating system.
pub async fn write(path: impl AsRef<Path>, bytes: impl Into<Vec<u8>>) -> io::Result<()> {
    let bytes = bytes.into();
    with_path("writing", path, move |path| fs::write(path, bytes)).await
}

/// Length, times and kind of the file at `path`; symbolic links are followed.
///
/// # Errors
/// Errors from the operating system.
pub async fn metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    with_path("describing", path, |path| fs::metadata(path)).await
}

/// As [`metadata`], but of a symbolic link itself.
///
/// # Errors
/// Errors from the operating system.
pub async fn symlink_metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    with_path("describing", path, |path| fs::symlink_metadata(path)).await
}

/// The absolute path, with all symbolic links resolved.
///
/// # Errors
/// Errors from the operating system.
pub async fn canonicalize(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    with_path("resolving", path, |path| fs::canonicalize(path)).await
}

/// All entries of a directory, in the system's order.
///
/// # Errors
/// Errors from the operating system.
pub async fn read_dir(path: impl AsRef<Path>) -> io::Result<Vec<DirEntry>> {
    with_path("listing", path, |path| fs::read_dir(path)?.collect()).await
}

/// Creates a directory and its missing parents.
///
/// # Errors
/// Errors from the operating system.
pub async fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    with_path("creating", path, |path| fs::create_dir_all(path)).await
}

/// Creates a directory.
///
/// # Errors
/// Errors from the operating system, such as [`AlreadyExists`](io::ErrorKind::AlreadyExists).
pub async fn create_dir(path: impl AsRef<Path>) -> io::Result<()> {
    with_path("creating", path, |path| fs::create_dir(path)).await
}

/// Removes an empty directory.
///
/// # Errors
/// Errors from the operating system.
pub async fn remove_dir(path: impl AsRef<Path>) -> io::Result<()> {
    with_path("removing", path, |path| fs::remove_dir(path)).await
}

/// Removes a directory with everything in it; symbolic links are not followed.
///
/// # Errors
/// Errors from the operating system. After an error some of the contents may be gone.
pub async fn remove_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    with_path("removing", path, |path| fs::remove_dir_all(path)).await
}

/// Removes a file.
///
/// # Errors
/// Errors from the operating system.
pub async fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    with_path("removing", path, |path| fs::remove_file(path)).await
}

/// Copies the file `from` to `to`, with its permissions. Returns the number of bytes.
///
/// # Errors
/// Errors from the operating system. After an error `to` may be incomplete.
pub async fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<u64> {
    let to = to.as_ref().to_owned();
    with_path("copying", from, move |from| fs::copy(from, to)).await
}

/// Renames a file; an existing file with the new name is replaced.
///
/// # Errors
/// Errors from the operating system.
pub async fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    let to = to.as_ref().to_owned();
    with_path("renaming", from, move |from| fs::rename(from, to)).await
}
