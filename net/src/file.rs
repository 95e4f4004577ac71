//! An open file: its operations run on threads that may block, unless it is a FIFO or a terminal, which the reactor
//! watches. What becomes of an operation whose future is dropped stands at [`File`].

use std::{
    fs::{self, Metadata, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::{fd::AsRawFd, unix::fs::FileExt},
    panic::Location,
    path::Path,
    sync::Arc,
};

use weald_kernel::{Done, Interest, IoSource, OperationName, offload_operation};

use crate::{
    descriptor::{self, Blocking, Descriptor, Sharing},
    opened::Opened,
    path_error::at_path,
    read_end::ReadEnd,
};

/// How many bytes of a stream are read at once, and how many are reserved before they are read.
const READ: usize = 64 << 10;

/// An open file.
///
/// # Cancel safety
/// If the future of an operation is dropped before a thread has begun it, the operation does not happen. Later it
/// happens all the same, and its result is lost: a dropped [`read`](File::read) or [`seek`](File::seek) still moves the
/// position, a dropped [`write_all`](File::write_all) still writes, and a dropped [`create`](File::create) still
/// truncates. An error that a dropped [`sync_all`](File::sync_all) has met is not reported by the next one.
/// [`open`](File::open), [`read_at`](File::read_at) and [`metadata`](File::metadata) are cancel-safe.
///
/// With a FIFO or a terminal [`read`](File::read) is cancel-safe; a dropped [`read_to_end`](File::read_to_end) loses
/// what it has read, and a dropped [`write_all`](File::write_all) does not tell how much it has written.
///
/// ```
/// use weald::fs::{self, File};
///
/// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
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

/// Whether a read of `file` never waits for another program.
fn is_regular(file: &fs::File) -> io::Result<bool> {
    Ok(file.metadata()?.is_file())
}

/// Reads at most `limit` bytes of a regular file.
fn read_regular(from: impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut buffer = Vec::new();
    buffer.try_reserve(limit.min(READ))?;
    from.take(limit as u64).read_to_end(&mut buffer)?;
    // Most of the room may have been for a longer file.
    if buffer.len() < buffer.capacity() / 2 {
        buffer.shrink_to_fit();
    }
    Ok(buffer)
}

/// Reads what is available, and at most `limit` bytes.
fn read_available(mut from: impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; limit.min(READ)];
    let count = from.read(&mut buffer)?;
    buffer.truncate(count);
    Ok(buffer)
}

impl File {
    /// Opens `path` for reading.
    ///
    /// # Errors
    /// Errors from the operating system, in a [`PathError`](crate::fs::PathError) that names the path. Fails if the
    /// runtime shuts down, as all other methods do.
    #[track_caller]
    pub fn open(path: impl AsRef<Path>) -> impl Future<Output = io::Result<File>> {
        let mut options = OpenOptions::new();
        options.read(true);
        File::open_with(path, options)
    }

    /// Opens `path` for writing; an existing file is truncated.
    ///
    /// # Errors
    /// Errors from the operating system.
    #[track_caller]
    pub fn create(path: impl AsRef<Path>) -> impl Future<Output = io::Result<File>> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        File::open_with(path, options)
    }

    /// Opens `path` with `options`.
    ///
    /// # Errors
    /// Errors from the operating system.
    #[track_caller]
    pub fn open_with(
        path: impl AsRef<Path>,
        options: OpenOptions,
    ) -> impl Future<Output = io::Result<File>> {
        let path: Arc<Path> = path.as_ref().into();
        let name = OperationName::file("opening", path.clone());
        let open = move || {
            let file = options
                .open(&path)
                .map_err(|error| at_path("opening", &path, error))?;
            OpenedFile::of(file, path)
        };
        async move { offload_operation(name, open).await?.watch() }
    }

    /// The file as a stream from its position on, for example for its [`lines`](ReadEnd::lines) or for the body of a
    /// response. Each read of a regular file is a call on a thread that may block.
    ///
    /// ```
    /// use weald::fs::{self, File};
    ///
    /// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
    /// # runtime.block_on(async {
    /// # let path = std::env::temp_dir().join(format!("weald-doc-lines-{}", std::process::id()));
    /// # fs::write(&path, "one\ntwo\n").await?;
    /// let mut lines = File::open(&path).await?.into_reader()?.lines();
    /// assert_eq!(lines.next().await?.as_deref(), Some("one"));
    /// # fs::remove_file(&path).await?;
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// Errors from the operating system, if this is a clone of a FIFO or a terminal.
    #[track_caller]
    pub fn into_reader(self) -> io::Result<ReadEnd> {
        let source = match self.source.map(Arc::try_unwrap) {
            Some(Ok(source)) => Some(source),
            None => None,
            Some(Err(_)) => {
                // The reactor knows the descriptor already, for the clone, which needs the open file's mode.
                let file = self.file.try_clone()?;
                return Ok(ReadEnd::of(Opened::new(file, Sharing::Shared, &self.path)?));
            }
        };
        Ok(ReadEnd::of(Opened {
            source,
            file: self.file,
            path: self.path,
            site: Location::caller(),
        }))
    }

    /// Wraps a file of the standard library. It stays in its mode, because it may be inherited; so if it is a FIFO or a
    /// terminal, a read or a write that has to wait holds a thread, even if the descriptor is non-blocking. Use
    /// [`ReadEnd::from_fd`](crate::ReadEnd::from_fd) for these.
    pub fn from_std(file: fs::File) -> File {
        let path = format!("descriptor {}", file.as_raw_fd());
        File {
            file: Arc::new(file),
            path: Path::new(&path).into(),
            source: None,
        }
    }

    /// Calls `act` with the file, on a thread that may block. `name` is how reports call it.
    #[track_caller]
    fn with<R: Send + 'static>(
        &self,
        name: &'static str,
        act: impl FnOnce(&fs::File) -> io::Result<R> + Send + 'static,
    ) -> impl Future<Output = io::Result<R>> {
        self.with_at(Location::caller(), name, act)
    }

    /// As [`with`](File::with), asked by the line `site`.
    fn with_at<R: Send + 'static>(
        &self,
        site: &'static Location<'static>,
        name: &'static str,
        act: impl FnOnce(&fs::File) -> io::Result<R> + Send + 'static,
    ) -> impl Future<Output = io::Result<R>> {
        let (file, path) = (self.file.clone(), self.path.clone());
        let operation = OperationName::file(name, path.clone()).asked_at(site);
        let work = move || act(&file).map_err(|error| at_path(name, &path, error));
        offload_operation(operation, work)
    }

    /// Reads at most `limit` bytes at the file's position. Empty at the end of the file. From a FIFO or a terminal it
    /// reads what is available, 64 KiB at most, and waits until something is.
    ///
    /// # Errors
    /// Errors from the operating system; [`OutOfMemory`](io::ErrorKind::OutOfMemory) if there is no room for the bytes.
    #[track_caller]
    pub fn read(&self, limit: usize) -> impl Future<Output = io::Result<Vec<u8>>> {
        let site = Location::caller();
        async move {
            match &self.source {
                Some(_) if limit == 0 => Ok(Vec::new()),
                Some(source) => {
                    let mut buffer = vec![0; limit.min(READ)];
                    let read = source.operate(Interest::Read, |descriptor: &Descriptor| {
                        descriptor.read_now(&mut buffer).map(Done::Maybe)
                    });
                    let read = read.await;
                    let count = read.map_err(|error| at_path("reading", &self.path, error))?;
                    buffer.truncate(count);
                    Ok(buffer)
                }
                None => {
                    let read = move |file: &fs::File| match is_regular(file)? {
                        true => read_regular(file, limit),
                        false => read_available(Blocking(file), limit),
                    };
                    self.with_at(site, "reading", read).await
                }
            }
        }
    }

    /// Reads at most `limit` bytes at `offset`, whatever the file's position is.
    ///
    /// # Errors
    /// As [`read`](File::read).
    #[track_caller]
    pub fn read_at(&self, offset: u64, limit: usize) -> impl Future<Output = io::Result<Vec<u8>>> {
        let read = move |file: &fs::File| match is_regular(file)? {
            true => read_regular(At { file, offset }, limit),
            false => read_available(At { file, offset }, limit),
        };
        self.with("reading", read)
    }

    /// Reads from the file's position to its end.
    ///
    /// # Errors
    /// Errors from the operating system.
    #[track_caller]
    pub fn read_to_end(&self) -> impl Future<Output = io::Result<Vec<u8>>> {
        let site = Location::caller();
        async move {
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
            self.with_at(site, "reading", |mut file| {
                let mut buffer = Vec::new();
                // The standard library knows how long a regular file is.
                match is_regular(file)? {
                    true => file.read_to_end(&mut buffer)?,
                    false => Blocking(file).read_to_end(&mut buffer)?,
                };
                Ok(buffer)
            })
            .await
        }
    }

    /// Writes all of `bytes` at the file's position.
    ///
    /// # Errors
    /// Errors from the operating system.
    #[track_caller]
    pub fn write_all(&self, bytes: impl Into<Vec<u8>>) -> impl Future<Output = io::Result<()>> {
        let (site, bytes) = (Location::caller(), bytes.into());
        async move {
            let Some(source) = &self.source else {
                let write = move |file: &fs::File| Blocking(file).write_all(&bytes);
                return self.with_at(site, "writing", write).await;
            };
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let write = source.operate(Interest::Write, |descriptor: &Descriptor| {
                    descriptor.write_now(rest).map(Done::Maybe)
                });
                let written = match write.await {
                    Ok(0) => Err(io::ErrorKind::WriteZero.into()),
                    written => written,
                };
                let count = written.map_err(|error| at_path("writing", &self.path, error))?;
                rest = &rest[count..];
            }
            Ok(())
        }
    }

    /// Writes all of `bytes` at `offset`, whatever the file's position is.
    ///
    /// # Errors
    /// Errors from the operating system.
    #[track_caller]
    pub fn write_all_at(
        &self,
        offset: u64,
        bytes: impl Into<Vec<u8>>,
    ) -> impl Future<Output = io::Result<()>> {
        let bytes = bytes.into();
        self.with("writing", move |file| file.write_all_at(&bytes, offset))
    }

    /// Moves the file's position. Returns the new position, counted from the start of the file.
    ///
    /// # Errors
    /// Errors from the operating system.
    #[track_caller]
    pub fn seek(&self, to: SeekFrom) -> impl Future<Output = io::Result<u64>> {
        self.with("seeking in", move |mut file| file.seek(to))
    }

    /// Waits until everything written, and all metadata, is on the storage device.
    ///
    /// # Errors
    /// Errors from the operating system. After an error the state of the storage device is unknown.
    #[track_caller]
    pub fn sync_all(&self) -> impl Future<Output = io::Result<()>> {
        self.with("syncing", fs::File::sync_all)
    }

    /// Waits until everything written can be read back after a loss of power.
    ///
    /// # Errors
    /// As [`sync_all`](File::sync_all).
    #[track_caller]
    pub fn sync_data(&self) -> impl Future<Output = io::Result<()>> {
        self.with("syncing", fs::File::sync_data)
    }

    /// Truncates the file, or extends it with zeros, to `length` bytes.
    ///
    /// # Errors
    /// Errors from the operating system.
    #[track_caller]
    pub fn set_len(&self, length: u64) -> impl Future<Output = io::Result<()>> {
        self.with("resizing", move |file| file.set_len(length))
    }

    /// Length, times and kind.
    ///
    /// # Errors
    /// Errors from the operating system.
    #[track_caller]
    pub fn metadata(&self) -> impl Future<Output = io::Result<Metadata>> {
        self.with("describing", fs::File::metadata)
    }
}
