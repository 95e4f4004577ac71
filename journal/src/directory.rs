//! A real directory as a medium.
//!
//! - A write that was interrupted by a signal before it wrote anything is begun again; nothing else is.
//! - The lock is `flock` on the file `lock`, which the system gives back when the process ends, however it ends.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, fdatasync, flock};
use rustix::io::{Errno, pread, pwrite};

use crate::medium::{LockError, Medium, MediumFile};
use crate::names::{LOCK, noted_pid};

/// A directory of the file system.
#[derive(Clone, Debug)]
pub struct Directory {
    path: PathBuf,
    is_read_only: bool,
}

impl Directory {
    /// The directory at this path. It is created when it is missing, with all that it is in, and the names are made
    /// durable.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let is_missing = |level: &&Path| !level.as_os_str().is_empty() && !level.exists();
        let missing = path.ancestors().take_while(is_missing).count();
        fs::create_dir_all(path)?;
        let path = path.canonicalize()?;
        // Also if it was there, because whoever made it may have ended before its name was durable.
        for parent in path.ancestors().skip(1).take(missing.max(1)) {
            File::open(parent)?.sync_all()?;
        }
        Ok(Self {
            path,
            is_read_only: false,
        })
    }

    /// The directory at this path.
    ///
    /// # Errors
    /// The directory does not exist.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref().canonicalize()?;
        if !path.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self {
            path,
            is_read_only: false,
        })
    }

    /// The directory at this path, of which files are opened for reading only.
    pub(crate) fn read_only(path: impl AsRef<Path>) -> io::Result<Self> {
        let directory = Self::open(path)?;
        Ok(Self {
            is_read_only: true,
            ..directory
        })
    }

    fn options() -> OpenOptions {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        options
    }
}

impl Medium for Directory {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let names = fs::read_dir(&self.path)?.map(|entry| entry.map(|entry| entry.file_name()));
        let names: Vec<_> = names.collect::<io::Result<_>>()?;
        Ok(names
            .into_iter()
            .filter_map(|name| name.into_string().ok())
            .collect())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn MediumFile>> {
        let file = Self::options()
            .create(true)
            .truncate(true)
            .open(self.path.join(name))?;
        Ok(Box::new(file))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn MediumFile>> {
        let path = self.path.join(name);
        if self.is_read_only {
            let file = File::open(&path).map_err(|error| named(&error, name))?;
            return Ok(Box::new(file));
        }
        // A user who may only read has no use for writing.
        let file = match Self::options().open(&path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => File::open(&path),
            other => other,
        };
        Ok(Box::new(file.map_err(|error| named(&error, name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    fn lock(&self) -> Result<Box<dyn MediumFile>, LockError> {
        let path = self.path.join(LOCK);
        let file = Self::options().create(true).truncate(false).open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Box::new(file)),
            Err(Errno::WOULDBLOCK) => Err(LockError::Held {
                pid: noted_pid(&file).unwrap_or(0),
            }),
            Err(error) => Err(LockError::Failed(error.into())),
        }
    }
}

/// The error of a file, with its name.
fn named(error: &io::Error, file: &str) -> io::Error {
    io::Error::new(error.kind(), format!("{file}: {error}"))
}

impl MediumFile for File {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < bytes.len() {
            match pread(self, &mut bytes[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(done)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        loop {
            match pwrite(self, bytes, offset) {
                Err(Errno::INTR) => {}
                other => return Ok(other?),
            }
        }
    }

    fn sync(&self) -> io::Result<()> {
        Ok(fdatasync(self)?)
    }

    fn cut(&self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}
