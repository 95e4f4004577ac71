//! An open file: its operations run on threads that may block, unless it is a FIFO or a terminal, which the reactor
//! watches.

use std::{
    fs::{self, Metadata, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::{fd::AsRawFd, unix::fs::FileExt},
    path::Path,
    sync::Arc,
};

use weald_kernel::{Done, Interest, IoSource, OperationName, offload_operation};

use crate::descriptor::{self, Descriptor, Sharing};

/// How many bytes of a stream are read at once, and how many are reserved before they are read.
const READ: usize = 64 << 10;

/// An open file.
///
/// Its methods are not cancel-safe, unless it is a FIFO or a terminal: a call that has begun still happens when its future
/// is dropped. A dropped [`read`](File::read) moves the position and loses the bytes, and a dropped
/// [`write_all`](File::write_all) still writes.
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
    path: Arc<Path>,
    /// Its place in the reactor, if it is a FIFO or a terminal.
    source: Option<Arc<IoSource<Descriptor>>>,
}

/// A file that was just opened.
pub(crate) struct OpenedFile {
    pub(crate) file: fs::File,
    path: Arc<Path>,
    pub(crate) may_wait: bool,
}

impl OpenedFile {
    pub(crate) fn of(file: fs::File, path: Arc<Path>) -> io::Result<OpenedFile> {
        let may_wait = descriptor::may_wait(&file)?;
        Ok(OpenedFile {
            file,
            path,
            may_wait,
        })
    }

    pub(crate) fn watch(self) -> io::Result<File> {
        let file = Arc::new(self.file);
        let source = match self.may_wait {
            true => Descriptor::watch(file.clone(), Sharing::Own)?,
            false => None,
        };
        Ok(File {
            file,
            path: self.path,
            source: source.map(Arc::new),
        })
    }
}

/// What is left of a file from an offset.
struct At<'a> {
    file: &'a fs::File,
    offset: u64,
}

impl Read for At<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}

/// Reads at most `limit` bytes. A regular file is read until then or to its end, and the buffer grows as it is read.
fn read_limited(file: &fs::File, mut from: impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut buffer = Vec::new();
    if file.metadata()?.is_file() {
        buffer.try_reserve(limit.min(READ))?;
        from.take(limit as u64).read_to_end(&mut buffer)?;
        // Most of the room may have been for a longer file.
        if buffer.len() < buffer.capacity() / 2 {
            buffer.shrink_to_fit();
        }
        return Ok(buffer);
    }
    buffer.resize(limit.min(READ), 0);
    let count = from.read(&mut buffer)?;
    buffer.truncate(count);
    Ok(buffer)
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
        let path: Arc<Path> = path.as_ref().into();
        let name = OperationName::file("opening", path.clone());
        let open = move || OpenedFile::of(options.open(&path)?, path);
        offload_operation(name, open).await?.watch()
    }

    /// Wraps a file of the standard library. It stays in its mode, because it may be inherited; so if it is a FIFO or a
    /// terminal, a read holds a thread. Use [`ReadEnd::from_fd`](crate::ReadEnd::from_fd) for these.
    pub fn from_std(file: fs::File) -> File {
        let path = format!("descriptor {}", file.as_raw_fd());
        File {
            file: Arc::new(file),
            path: Path::new(&path).into(),
            source: None,
        }
    }

    /// Calls `act` with the file, on a thread that may block. `name` is how reports call it.
    async fn with<R: Send + 'static>(
        &self,
        name: &'static str,
        act: impl FnOnce(&fs::File) -> io::Result<R> + Send + 'static,
    ) -> io::Result<R> {
        let file = self.file.clone();
        let name = OperationName::file(name, self.path.clone());
        offload_operation(name, move || act(&file)).await
    }

    /// Reads at most `limit` bytes at the file's position. Empty at the end of the file. From a FIFO or a terminal it
    /// reads what is available, 64 KiB at most, and waits until something is.
    ///
    /// # Errors
    /// Errors from the operating system; [`OutOfMemory`](io::ErrorKind::OutOfMemory) if there is no room for the bytes.
    pub async fn read(&self, limit: usize) -> io::Result<Vec<u8>> {
        match &self.source {
            Some(source) => {
                let mut buffer = vec![0; limit.min(READ)];
                let read = source.operate(Interest::Read, |descriptor: &Descriptor| {
                    descriptor.read_now(&mut buffer).map(Done::Maybe)
                });
                let count = read.await?;
                buffer.truncate(count);
                Ok(buffer)
            }
            None => {
                self.with("reading", move |file| read_limited(file, file, limit))
                    .await
            }
        }
    }

    /// Reads at most `limit` bytes at `offset`, whatever the file's position is.
    ///
    /// # Errors
    /// As [`read`](File::read).
    pub async fn read_at(&self, offset: u64, limit: usize) -> io::Result<Vec<u8>> {
        self.with("reading", move |file| {
            read_limited(file, At { file, offset }, limit)
        })
        .await
    }

    /// Reads from the file's position to its end.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub async fn read_to_end(&self) -> io::Result<Vec<u8>> {
        if self.source.is_some() {
            let mut all = Vec::new();
            loop {
                let bytes = self.read(READ).await?;
                if bytes.is_empty() {
                    return Ok(all);
                }
                all.try_reserve(bytes.len())?;
                all.extend(bytes);
            }
        }
        self.with("reading", |mut file| {
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
        let Some(source) = &self.source else {
            let write = move |mut file: &fs::File| file.write_all(&bytes);
            return self.with("writing", write).await;
        };
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let write = source.operate(Interest::Write, |descriptor: &Descriptor| {
                descriptor.write_now(rest).map(Done::Maybe)
            });
            match write.await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => rest = &rest[count..],
            }
        }
        Ok(())
    }

    /// Writes all of `bytes` at `offset`, whatever the file's position is.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub async fn write_all_at(&self, offset: u64, bytes: impl Into<Vec<u8>>) -> io::Result<()> {
        let bytes = bytes.into();
        self.with("writing", move |file| file.write_all_at(&bytes, offset))
            .await
    }

    /// Moves the file's position. Returns the new position, counted from the start of the file.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub async fn seek(&self, to: SeekFrom) -> io::Result<u64> {
        self.with("seeking in", move |mut file| file.seek(to)).await
    }

    /// Waits until everything written, and all metadata, is on the storage device.
    ///
    /// # Errors
    /// Errors from the operating system. After an error the state of the storage device is unknown.
    pub async fn sync_all(&self) -> io::Result<()> {
        self.with("syncing", fs::File::sync_all).await
    }

    /// Waits until everything written can be read back after a loss of power.
    ///
    /// # Errors
    /// As [`sync_all`](File::sync_all).
    pub async fn sync_data(&self) -> io::Result<()> {
        self.with("syncing", fs::File::sync_data).await
    }

    /// Truncates the file, or extends it with zeros, to `length` bytes.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub async fn set_len(&self, length: u64) -> io::Result<()> {
        self.with("resizing", move |file| file.set_len(length))
            .await
    }

    /// Length, times and kind.
    ///
    /// # Errors
    /// Errors from the operating system.
    pub async fn metadata(&self) -> io::Result<Metadata> {
        self.with("describing", fs::File::metadata).await
    }
}
