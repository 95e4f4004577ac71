//! Files, without blocking a worker: each call is an offloaded call of `std::fs`.
//!
//! The system reports no readiness for files, so every call runs on a blocking thread. The handoff costs some ten
//! microseconds: read and write in large pieces. Buffers are passed by value, because a call that has started cannot
//! be cancelled.
//!
//! # Cancel safety
//! If the future of any function here is dropped before a thread has begun the call, nothing happens. Later the call
//! runs to its end all the same, and its result is lost. So the functions that only read are cancel-safe, unless
//! [`read`] or [`read_to_string`] reads a FIFO or a terminal, whose bytes are then lost.
//!
//! A FIFO or a terminal is opened on a thread, too, because opening a FIFO waits for its other end. It is then read and
//! written through the reactor, and so holds no thread. For streams of it see [`ReadEnd`](crate::ReadEnd).
//!
//! As many calls run at once as there may be [blocking threads](weald_kernel::Builder::blocking_threads); the others
//! wait for one. A call that has held its thread for 10 ms does not count while others wait, so calls that never
//! return stop no other. Such calls have a bound of their own
//! ([`held_operations`](weald_kernel::Builder::held_operations)). Beyond that bound, a call that has waited for a
//! second in which none returned fails with [`ResourceBusy`](io::ErrorKind::ResourceBusy), which contains a
//! [`NoFreeThread`](weald_kernel::NoFreeThread). A call that has not returned for a second is reported, with its path
//! and the job, or outside of jobs with the line that asked.

use std::{
    fs::{self, DirEntry, Metadata},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use weald_kernel::{OperationName, offload_operation};

pub use crate::{file::File, path_error::PathError};
use crate::{
    file::OpenedFile,
    path_error::{at_path, at_paths},
};

/// Calls `act` with `path`, on a thread that may block. `name` is how reports and errors call it.
#[track_caller]
fn with_path<R: Send + 'static>(
    name: &'static str,
    path: Arc<Path>,
    act: impl FnOnce(&Path) -> io::Result<R> + Send + 'static,
) -> impl Future<Output = io::Result<R>> {
    let operation = OperationName::file(name, path.clone());
    let work = move || act(&path).map_err(|error| at_path(name, &path, error));
    offload_operation(operation, work)
}

/// As [`with_path`], for a call on two paths.
#[track_caller]
fn with_paths<R: Send + 'static>(
    name: &'static str,
    (from, to): (Arc<Path>, Arc<Path>),
    act: impl FnOnce(&Path, &Path) -> io::Result<R> + Send + 'static,
) -> impl Future<Output = io::Result<R>> {
    let operation = OperationName::file(name, from.clone());
    let work = move || {
        let done = act(&from, &to);
        done.map_err(|error| at_paths(name, (&from, Some(&to)), error))
    };
    offload_operation(operation, work)
}

/// The content of a file, or the stream that it turned out to be.
enum Whole {
    Bytes(Vec<u8>),
    /// A FIFO or a terminal, to be read through the reactor.
    Stream(OpenedFile),
}

/// Reads the whole file.
///
/// ```
/// weald::block_on(async {
///     let system = weald::fs::read("/proc/version").await?;
///     assert!(system.starts_with(b"Linux"));
///     let missing = weald::fs::read("/no such file").await.unwrap_err();
///     assert!(missing.to_string().contains("/no such file"));
///     Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// Errors from the operating system, in a [`PathError`], as those of all functions here, unless the program has no
/// descriptor or memory left ([`is_exhausted`](crate::is_exhausted)). Fails if the runtime shuts down, as all other
/// functions do.
#[track_caller]
pub fn read(path: impl AsRef<Path>) -> impl Future<Output = io::Result<Vec<u8>>> {
    let path: Arc<Path> = path.as_ref().into();
    let opened = path.clone();
    let whole = with_path("reading", path, move |_path| {
        let mut opened = OpenedFile::of(fs::File::open(&opened)?, opened)?;
        if opened.may_wait {
            return Ok(Whole::Stream(opened));
        }
        let mut bytes = Vec::new();
        opened.file.read_to_end(&mut bytes)?;
        Ok(Whole::Bytes(bytes))
    });
    async move {
        match whole.await? {
            Whole::Bytes(bytes) => Ok(bytes),
            Whole::Stream(opened) => opened.watch()?.read_to_end().await,
        }
    }
}

/// Reads the whole file as text.
///
/// # Errors
/// Errors from the operating system; [`InvalidData`](io::ErrorKind::InvalidData) if the file is not UTF-8.
#[track_caller]
pub fn read_to_string(path: impl AsRef<Path>) -> impl Future<Output = io::Result<String>> {
    let bytes = read(path);
    async move {
        let text = String::from_utf8(bytes.await?);
        text.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

/// Replaces the contents of the file by `bytes`. Not atomic: a loss of power may leave a part.
///
/// # Errors
/// Errors from the operating system.
#[track_caller]
pub fn write(
    path: impl AsRef<Path>,
    bytes: impl Into<Vec<u8>>,
) -> impl Future<Output = io::Result<()>> {
    let path: Arc<Path> = path.as_ref().into();
    let (opened, bytes) = (path.clone(), bytes.into());
    let begun = with_path("writing", path, move |_path| {
        let mut opened = OpenedFile::of(fs::File::create(&opened)?, opened)?;
        if opened.may_wait {
            return Ok(Some((opened, bytes)));
        }
        opened.file.write_all(&bytes)?;
        Ok(None)
    });
    async move {
        // The rest is for a FIFO or a terminal, which is written through the reactor.
        let Some((opened, bytes)) = begun.await? else {
            return Ok(());
        };
        opened.watch()?.write_all(bytes).await
    }
}

/// Length, times and kind of the file at `path`; symbolic links are followed.
///
/// # Errors
/// Errors from the operating system.
#[track_caller]
pub fn metadata(path: impl AsRef<Path>) -> impl Future<Output = io::Result<Metadata>> {
    with_path("describing", path.as_ref().into(), |path| {
        fs::metadata(path)
    })
}

/// As [`metadata`], but of a symbolic link itself.
///
/// # Errors
/// Errors from the operating system.
#[track_caller]
pub fn symlink_metadata(path: impl AsRef<Path>) -> impl Future<Output = io::Result<Metadata>> {
    with_path("describing", path.as_ref().into(), |path| {
        fs::symlink_metadata(path)
    })
}

/// The absolute path, with all symbolic links resolved.
///
/// # Errors
/// Errors from the operating system.
#[track_caller]
pub fn canonicalize(path: impl AsRef<Path>) -> impl Future<Output = io::Result<PathBuf>> {
    with_path("resolving", path.as_ref().into(), |path| {
        fs::canonicalize(path)
    })
}

/// All entries of a directory, in the system's order.
///
/// # Errors
/// Errors from the operating system.
#[track_caller]
pub fn read_dir(path: impl AsRef<Path>) -> impl Future<Output = io::Result<Vec<DirEntry>>> {
    with_path("listing", path.as_ref().into(), |path| {
        fs::read_dir(path)?.collect()
    })
}

/// Creates a directory and its missing parents.
///
/// # Errors
/// Errors from the operating system.
#[track_caller]
pub fn create_dir_all(path: impl AsRef<Path>) -> impl Future<Output = io::Result<()>> {
    with_path("creating", path.as_ref().into(), |path| {
        fs::create_dir_all(path)
    })
}

/// Creates a directory.
///
/// # Errors
/// Errors from the operating system, such as [`AlreadyExists`](io::ErrorKind::AlreadyExists).
#[track_caller]
pub fn create_dir(path: impl AsRef<Path>) -> impl Future<Output = io::Result<()>> {
    with_path("creating", path.as_ref().into(), |path| {
        fs::create_dir(path)
    })
}

/// Removes an empty directory.
///
/// # Errors
/// Errors from the operating system.
#[track_caller]
pub fn remove_dir(path: impl AsRef<Path>) -> impl Future<Output = io::Result<()>> {
    with_path("removing", path.as_ref().into(), |path| {
        fs::remove_dir(path)
    })
}

/// Removes a directory with everything in it; symbolic links are not followed.
///
/// # Errors
/// Errors from the operating system. After an error some of the contents may be gone.
#[track_caller]
pub fn remove_dir_all(path: impl AsRef<Path>) -> impl Future<Output = io::Result<()>> {
    with_path("removing", path.as_ref().into(), |path| {
        fs::remove_dir_all(path)
    })
}

/// Removes a file.
///
/// # Errors
/// Errors from the operating system.
#[track_caller]
pub fn remove_file(path: impl AsRef<Path>) -> impl Future<Output = io::Result<()>> {
    with_path("removing", path.as_ref().into(), |path| {
        fs::remove_file(path)
    })
}

/// Copies the file `from` to `to`, with its permissions. Returns the number of bytes. A copy from or to a FIFO or a
/// terminal holds a thread.
///
/// # Errors
/// Errors from the operating system. After an error `to` may be incomplete.
#[track_caller]
pub fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> impl Future<Output = io::Result<u64>> {
    with_paths(
        "copying",
        (from.as_ref().into(), to.as_ref().into()),
        |from, to| fs::copy(from, to),
    )
}

/// Renames a file; an existing file with the new name is replaced.
///
/// # Errors
/// Errors from the operating system.
#[track_caller]
pub fn rename(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
) -> impl Future<Output = io::Result<()>> {
    with_paths(
        "renaming",
        (from.as_ref().into(), to.as_ref().into()),
        |from, to| fs::rename(from, to),
    )
}
