//! Files, without blocking a worker: each call is the one of `std::fs`, offloaded.
//!
//! The system has no readiness for files, so every call costs a hand-over to a thread that may block,
//! some ten microseconds: read and write in large pieces. Buffers are passed by value, because a call that
//! has begun cannot be taken back: a future that is dropped leaves it to its end.
//!
//! At most 64 calls are under way at once in a program, and the others wait. Work that is itself
//! [offloaded](crate::offload()) must not wait for one, which may then never end: it uses `std::fs`.

use std::{
    fs::{self, DirEntry, Metadata, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::offload::offload;

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
    /// Those of the system; and if the runtime shuts down. So do all others.
    pub async fn open(path: impl AsRef<Path>) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true);
        File::open_with(path, options).await
    }

    /// Opens `path` for writing; an existing file is emptied.
    ///
    /// # Errors
    /// Those of the system.
    pub async fn create(path: impl AsRef<Path>) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        File::open_with(path, options).await
    }

    /// Opens `path` as `options` say.
    ///
    /// # Errors
    /// Those of the system.
    pub async fn open_with(path: impl AsRef<Path>, options: OpenOptions) -> io::Result<File> {
        let path = path.as_ref().to_owned();
        let file = offload(move || options.open(path)).await??;
        Ok(File::from_std(file))
    }

    /// A file of the standard library.
    pub fn from_std(file: fs::File) -> File {
        File {
            file: Arc::new(file),
        }
    }

    /// Does `act` with the file, on a thread that may block.
    async fn with<R: Send + 'static>(
        &self,
        act: impl FnOnce(&fs::File) -> io::Result<R> + Send + 'static,
    ) -> io::Result<R> {
        let file = self.file.clone();
        offload(move || act(&file)).await?
    }

    /// Reads at most `most` bytes from the file's position on; empty at the end.
    ///
    /// # Errors
    /// Those of the system.
    pub async fn read(&self, most: usize) -> io::Result<Vec<u8>> {
        self.with(move |mut file| {
            let mut buffer = vec![0; most];
            let count = file.read(&mut buffer)?;
            buffer.truncate(count);
            Ok(buffer)
        })
        .await
    }

    /// Reads at most `most` bytes from `offset` on, wherever the file's position is.
    ///
    /// # Errors
    /// Those of the system.
    pub async fn read_at(&self, offset: u64, most: usize) -> io::Result<Vec<u8>> {
        self.with(move |file| {
            let mut buffer = vec![0; most];
            let count = file.read_at(&mut buffer, offset)?;
            buffer.truncate(count);
            Ok(buffer)
        })
        .await
    }

    /// Reads from the file's position to its end.
    ///
    /// # Errors
    /// Those of the system.
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
    /// Those of the system.
    pub async fn write_all(&self, bytes: impl Into<Vec<u8>>) -> io::Result<()> {
        let bytes = bytes.into();
        self.with(move |mut file| file.write_all(&bytes)).await
    }

    /// Writes all of `bytes` at `offset`, wherever the file's position is.
    ///
    /// # Errors
    /// Those of the system.
    pub async fn write_all_at(&self, offset: u64, bytes: impl Into<Vec<u8>>) -> io::Result<()> {
        let bytes = bytes.into();
        self.with(move |file| file.write_all_at(&bytes, offset))
            .await
    }

    /// Moves the file's position; returns the new one, from the beginning.
    ///
    /// # Errors
    /// Those of the system.
    pub async fn seek(&self, to: SeekFrom) -> io::Result<u64> {
        self.with(move |mut file| file.seek(to)).await
    }

    /// Waits until what was written, and all that is known of the file, is on the medium.
    ///
    /// # Errors
    /// Those of the system; after one nobody knows what is on the medium.
    pub async fn sync_all(&self) -> io::Result<()> {
        self.with(fs::File::sync_all).await
    }

    /// Waits until what was written can be read again after a loss of power.
    ///
    /// # Errors
    /// As [`sync_all`](File::sync_all).
    pub async fn sync_data(&self) -> io::Result<()> {
        self.with(fs::File::sync_data).await
    }

    /// Cuts the file, or fills it with zeros, to `length` bytes.
    ///
    /// # Errors
    /// Those of the system.
    pub async fn set_len(&self, length: u64) -> io::Result<()> {
        self.with(move |file| file.set_len(length)).await
    }

    /// Length, times, kind.
    ///
    /// # Errors
    /// Those of the system.
    pub async fn metadata(&self) -> io::Result<Metadata> {
        self.with(fs::File::metadata).await
    }
}

/// Does `act` with an owned path, on a thread that may block.
async fn with_path<R: Send + 'static>(
    path: impl AsRef<Path>,
    act: impl FnOnce(PathBuf) -> io::Result<R> + Send + 'static,
) -> io::Result<R> {
    let path = path.as_ref().to_owned();
    offload(move || act(path)).await?
}

/// The whole file.
///
/// # Errors
/// Those of the system; and if the runtime shuts down. So do all others.
pub async fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    with_path(path, fs::read).await
}

/// The whole file as text.
///
/// # Errors
/// Those of the system; [`InvalidData`](io::ErrorKind::InvalidData) if it is not UTF-8.
pub async fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    with_path(path, fs::read_to_string).await
}

/// Makes the file consist of `bytes`. Not atomic: a loss of power may leave a part.
///
/// # Errors
/// Those of the system.
pub async fn write(path: impl AsRef<Path>, bytes: impl Into<Vec<u8>>) -> io::Result<()> {
    let bytes = bytes.into();
    with_path(path, move |path| fs::write(path, bytes)).await
}

/// Length, times, kind of what `path` leads to.
///
/// # Errors
/// Those of the system.
pub async fn metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    with_path(path, fs::metadata).await
}

/// As [`metadata`], of a symbolic link itself.
///
/// # Errors
/// Those of the system.
pub async fn symlink_metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    with_path(path, fs::symlink_metadata).await
}

/// The path from the root on, without symbolic links.
///
/// # Errors
/// Those of the system.
pub async fn canonicalize(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    with_path(path, fs::canonicalize).await
}

/// All entries of a directory, in the system's order.
///
/// # Errors
/// Those of the system.
pub async fn read_dir(path: impl AsRef<Path>) -> io::Result<Vec<DirEntry>> {
    with_path(path, |path| fs::read_dir(path)?.collect()).await
}

/// Makes a directory, and those above it that are missing.
///
/// # Errors
/// Those of the system.
pub async fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    with_path(path, fs::create_dir_all).await
}

/// Makes a directory.
///
/// # Errors
/// Those of the system: [`AlreadyExists`](io::ErrorKind::AlreadyExists) say.
pub async fn create_dir(path: impl AsRef<Path>) -> io::Result<()> {
    with_path(path, fs::create_dir).await
}

/// Removes an empty directory.
///
/// # Errors
/// Those of the system.
pub async fn remove_dir(path: impl AsRef<Path>) -> io::Result<()> {
    with_path(path, fs::remove_dir).await
}

/// Removes a directory with all that is in it; symbolic links are not followed.
///
/// # Errors
/// Those of the system; a part may be removed then.
pub async fn remove_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    with_path(path, fs::remove_dir_all).await
}

/// Removes a file.
///
/// # Errors
/// Those of the system.
pub async fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    with_path(path, fs::remove_file).await
}

/// Makes `to` a copy of the file `from`, with its permissions; returns how many bytes that are.
///
/// # Errors
/// Those of the system; `to` may be a part then.
pub async fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<u64> {
    let to = to.as_ref().to_owned();
    with_path(from, move |from| fs::copy(from, to)).await
}

/// Renames a file; one with the new name is replaced.
///
/// # Errors
/// Those of the system.
pub async fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    let to = to.as_ref().to_owned();
    with_path(from, move |from| fs::rename(from, to)).await
}
