//! Files, without blocking a worker: each call is an offloaded call of `std::fs`.
//!
//! The system reports no readiness for files, so every call runs on a blocking thread. The handoff costs some ten
//! microseconds: read and write in large pieces. Buffers are passed by value, because a call that has started cannot
//! be cancelled: if its future is dropped, the call still runs to its end.
//!
//! As many calls run at once as there may be [blocking threads](weald_kernel::Builder::blocking_threads); the others
//! wait for their turn.

use std::{
    fs::{self, DirEntry, Metadata, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use weald_kernel::offload;

/// An open file.
///
/// ```
/// use weald_net::fs::{self, File};
///
/// # let runtime = weald_kernel::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// let path = std::env::temp_dir().join(format!("weald-doc-{}", std::process::id()));
/// let file = File::create(&path).await?;
/// file.write_all("hello").await?;
/// file.sync_all().await?;
/// assert_eq!(fs::read(&path).await?, b"hello");
/// fs::remove_file(&path).await?;
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct File {
    file: Arc<fs::File>,
}

impl File {
    /// Opens `path` for reading.
    ///
    /// # Errors
    /// Errors from the operating system. Fails if the runtime shuts down, as all other methods do.
    pub async fn open(path: impl AsRef<Path>) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true);
        File::open_with(path, options).await
    }

    /// Opens `path` for writing; an existing file is truncated.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub async fn create(path: impl AsRef<Path>) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        File::open_with(path, options).await
    }

    /// Opens `path` with `options`.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub async fn open_with(path: impl AsRef<Path>, options: OpenOptions) -> io::Result<File> {
        let path = path.as_ref().to_owned();
        let file = offload(move || options.open(path)).await??;
        Ok(File::from_std(file))
    }

    /// Wraps a file of the standard library.
    pub fn from_std(file: fs::File) -> File {
        File {
            file: Arc::new(file),
        }
    }

    /// Calls `act` with the file, on a thread that may block.
    async fn with<R: Send + 'static>(
        &self,
        act: impl FnOnce(&fs::File) -> io::Result<R> + Send + 'static,
    ) -> io::Result<R> {
        let file = self.file.clone();
        offload(move || act(&file)).await?
    }

    /// Reads at most `limit` bytes at the file's position. Empty at the end of the file.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub async fn read(&self, limit: usize) -> io::Result<Vec<u8>> {
        self.with(move |mut file| {
            let mut buffer = vec![0; limit];
            let count = file.read(&mut buffer)?;
            buffer.truncate(count);
            Ok(buffer)
        })
        .await
    }

    /// Reads at most `limit` bytes at `offset`, whatever the file's position is.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub async fn read_at(&self, offset: u64, limit: usize) -> io::Result<Vec<u8>> {
        self.with(move |file| {
            let mut buffer = vec![0; limit];
            let count = file.read_at(&mut buffer, offset)?;
            buffer.truncate(count);
            Ok(buffer)
        })
        .await
    }

    /// Reads from the file's position to its end.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub async fn read_to_end(&self) -> io::Result<Vec<u8>> {
        self.with(|mut file| {
            let mut buffer = Vec::new();
            file.read_to_end(&mut buffer)?;
            Ok(buffer)
        })
        .await
    }

    /// Writes all of `bytes` at the file's position.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub async fn write_all(&self, bytes: impl Into<Vec<u8>>) -> io::Result<()> {
        let bytes = bytes.into();
        self.with(move |mut file| file.write_all(&bytes)).await
    }

    /// Writes all of `bytes` at `offset`, whatever the file's position is.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub async fn write_all_at(&self, offset: u64, bytes: impl Into<Vec<u8>>) -> io::Result<()> {
        let bytes = bytes.into();
        self.with(move |file| file.write_all_at(&bytes, offset))
            .await
    }

    /// Moves the file's position. Returns the new position, counted from the start of the file.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub async fn seek(&self, to: SeekFrom) -> io::Result<u64> {
        self.with(move |mut file| file.seek(to)).await
    }

    /// Waits until everything written, and all metadata, is on the storage device.
    ///
    /// # Errors
    /// Errors from the operating system. After an error the state of the storage device is unknown.
    pub async fn sync_all(&self) -> io::Result<()> {
        self.with(fs::File::sync_all).await
    }

    /// Waits until everything written can be read back after a loss of power.
    ///
    /// # Errors
    /// As [`sync_all`](File::sync_all).
    pub async fn sync_data(&self) -> io::Result<()> {
        self.with(fs::File::sync_data).await
    }

    /// Truncates the file, or extends it with zeros, to `length` bytes.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub async fn set_len(&self, length: u64) -> io::Result<()> {
        self.with(move |file| file.set_len(length)).await
    }

    /// Length, times and kind.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub async fn metadata(&self) -> io::Result<Metadata> {
        self.with(fs::File::metadata).await
    }
}

/// Calls `act` with an owned path, on a thread that may block.
async fn with_path<R: Send + 'static>(
    path: impl AsRef<Path>,
    act: impl FnOnce(PathBuf) -> io::Result<R> + Send + 'static,
) -> io::Result<R> {
    let path = path.as_ref().to_owned();
    offload(move || act(path)).await?
}

/// Reads the whole file.
///
/// # Errors
/// Errors from the operating system. Fails if the runtime shuts down, as all other functions do.
pub async fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    with_path(path, fs::read).await
}

/// Reads the whole file as text.
///
/// # Errors
/// Errors from the operating system; [`InvalidData`](io::ErrorKind::InvalidData) if the file is not UTF-8.
pub async fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    with_path(path, fs::read_to_string).await
}

/// Replaces the contents of the file by `bytes`. Not atomic: a loss of power may leave a part.
///
/// # Errors
/// Errors from the operating system.
pub async fn write(path: impl AsRef<Path>, bytes: impl Into<Vec<u8>>) -> io::Result<()> {
    let bytes = bytes.into();
    with_path(path, move |path| fs::write(path, bytes)).await
}

/// Length, times and kind of the file at `path`; symbolic links are followed.
///
/// # Errors
/// Errors from the operating system.
pub async fn metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    with_path(path, fs::metadata).await
}

/// As [`metadata`], but of a symbolic link itself.
///
/// # Errors
/// Errors from the operating system.
pub async fn symlink_metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    with_path(path, fs::symlink_metadata).await
}

/// The absolute path, with all symbolic links resolved.
///
/// # Errors
/// Errors from the operating system.
pub async fn canonicalize(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    with_path(path, fs::canonicalize).await
}

/// All entries of a directory, in the system's order.
///
/// # Errors
/// Errors from the operating system.
pub async fn read_dir(path: impl AsRef<Path>) -> io::Result<Vec<DirEntry>> {
    with_path(path, |path| fs::read_dir(path)?.collect()).await
}

/// Creates a directory and its missing parents.
///
/// # Errors
/// Errors from the operating system.
pub async fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    with_path(path, fs::create_dir_all).await
}

/// Creates a directory.
///
/// # Errors
/// Errors from the operating system, such as [`AlreadyExists`](io::ErrorKind::AlreadyExists).
pub async fn create_dir(path: impl AsRef<Path>) -> io::Result<()> {
    with_path(path, fs::create_dir).await
}

/// Removes an empty directory.
///
/// # Errors
/// Errors from the operating system.
pub async fn remove_dir(path: impl AsRef<Path>) -> io::Result<()> {
    with_path(path, fs::remove_dir).await
}

/// Removes a directory with everything in it; symbolic links are not followed.
///
/// # Errors
/// Errors from the operating system. After an error some of the contents may be gone.
pub async fn remove_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    with_path(path, fs::remove_dir_all).await
}

/// Removes a file.
///
/// # Errors
/// Errors from the operating system.
pub async fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    with_path(path, fs::remove_file).await
}

/// Copies the file `from` to `to`, with its permissions. Returns the number of bytes.
///
/// # Errors
/// Errors from the operating system. After an error `to` may be incomplete.
pub async fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<u64> {
    let to = to.as_ref().to_owned();
    with_path(from, move |from| fs::copy(from, to)).await
}

/// Renames a file; an existing file with the new name is replaced.
///
/// # Errors
/// Errors from the operating system.
pub async fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    let to = to.as_ref().to_owned();
    with_path(from, move |from| fs::rename(from, to)).await
}
