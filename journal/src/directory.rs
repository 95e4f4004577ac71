//! A real directory as a medium.
//!
//! - A write that was interrupted by a signal before it wrote anything is begun again; nothing else is.
//! - All files are reached from the directory that was opened, wherever it is moved and whatever is put at its path.
//! - What is created is for its owner alone, as the keys are in it: a directory has the mode 0700, and a file 0600.
//! - The lock is `flock` on the file `lock`, which the system gives back when the process ends, however it ends.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;

use rustix::fs::{
    AtFlags, Dir, FlockOperation, Mode, OFlags, fdatasync, flock, fstat, openat, renameat, statat,
    unlinkat,
};
use rustix::io::{Errno, pread, pwrite, retry_on_intr};
use weald_forest::journal::notice;

use crate::medium::{LockError, Medium, MediumFile};
use crate::names::{LOCK, keys_of, noted_pid};

/// A directory of the file system. It stays the same one when it is moved, and when another one is put at its path.
#[derive(Clone, Debug)]
pub struct Directory {
    path: PathBuf,
    handle: Arc<File>,
    is_read_only: bool,
}

impl Directory {
    /// The directory at this path. If it is missing, it and the directories above it are created, and their names are
    /// made durable; only its owner may look into it. A directory that is there keeps its mode, with a warning if
    /// others may read the keys in it.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let is_missing = |level: &&Path| !level.as_os_str().is_empty() && !level.exists();
        let missing = path.ancestors().take_while(is_missing).count();
        if missing > 0 {
            create_private(path)?;
        }
        let directory = Self::open(path)?;
        directory.warn_of_readers();
        // Also if it was there already: the process that made it may have ended before the name was
        // durable.
        for parent in directory.path.ancestors().skip(1).take(missing.max(1)) {
            match File::open(parent) {
                // This user may not make the name durable.
                Err(error) if missing == 0 && error.kind() == io::ErrorKind::PermissionDenied => {}
                parent => parent?.sync_all()?,
            }
        }
        Ok(directory)
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
        let handle = Arc::new(File::open(&path)?);
        Ok(Self {
            path,
            handle,
            is_read_only: false,
        })
    }

    /// The directory at this path. Its files are opened for reading only.
    pub(crate) fn read_only(path: impl AsRef<Path>) -> io::Result<Self> {
        let directory = Self::open(path)?;
        Ok(Self {
            is_read_only: true,
            ..directory
        })
    }

    fn file(&self, name: &str, flags: OFlags) -> Result<File, Errno> {
        let flags = flags | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o600);
        retry_on_intr(|| openat(&self.handle, name, flags, mode)).map(File::from)
    }

    /// Warns if others may read a key. That they cannot be listed is no reason not to.
    fn warn_of_readers(&self) {
        let Some(file) = self.key_for_others() else {
            return;
        };
        let name = self.name();
        notice(move || {
            tracing::warn!(
                "{name}: other users may read {file}, and with it what is erased; take that right away (chmod -R go= {name})"
            );
        });
    }

    /// A file with keys that other users may read.
    fn key_for_others(&self) -> Option<String> {
        let directory = self.handle.metadata().ok()?.mode();
        let files = self.list().ok()?;
        let mut keys = files.into_iter().filter(|name| keys_of(name).is_some());
        keys.find(|name| {
            let file = statat(&self.handle, name.as_str(), AtFlags::empty());
            // The classes of users that may enter the directory, and those that may read the file.
            let (enters, reads) = (
                directory & 0o011,
                file.map_or(0, |file| file.st_mode) >> 2 & 0o011,
            );
            enters & reads != 0
        })
    }

    fn locked(&self) -> Result<LockFile, LockError> {
        loop {
            let file = self.file(LOCK, OFlags::RDWR | OFlags::CREATE);
            let file = file.map_err(io::Error::from)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => {
                    let pid = noted_pid(&file).unwrap_or(0);
                    return Err(LockError::Held { pid });
                }
                Err(error) => return Err(LockError::Failed(error.into())),
            }
            let is = fstat(&file).map_err(io::Error::from)?;
            let lock = LockFile {
                file,
                number: (is.st_dev, is.st_ino),
                directory: Arc::clone(&self.handle),
                pid: process::id(),
            };
            // If it was removed meanwhile, another one may be locked.
            if lock.has_its_name()? {
                return Ok(lock);
            }
        }
    }
}

/// Creates a directory for its owner alone, and those above it as they usually are.
fn create_private(path: &Path) -> io::Result<()> {
    let create = || DirBuilder::new().mode(0o700).create(path);
    let created = match (create(), path.parent()) {
        (Err(error), Some(above)) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(above)?;
            create()
        }
        (created, _) => created,
    };
    match created {
        // Somebody else was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        created => created,
    }
}

impl Medium for Directory {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.handle)? {
            let name = entry?.file_name().to_str().map(str::to_owned);
            names.extend(name.ok().filter(|name| name != "." && name != ".."));
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn MediumFile>> {
        let file = self.file(name, OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC)?;
        Ok(Box::new(file))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn MediumFile>> {
        // Something else that has the name of a file, as a pipe, must not be waited for.
        let open = |flags| self.file(name, flags | OFlags::NONBLOCK);
        let file = match self.is_read_only {
            true => open(OFlags::RDONLY),
            // A user who may only read has no use for writing.
            false => match open(OFlags::RDWR) {
                Err(Errno::ACCESS | Errno::PERM | Errno::ISDIR) => open(OFlags::RDONLY),
                other => other,
            },
        };
        let file = file.map_err(|error| named(error, name))?;
        if !file.metadata()?.is_file() {
            let text = format!(
                "{name} is no regular file. Move it elsewhere, or put the file back from a copy of the directory"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        Ok(Box::new(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let renamed = renameat(&self.handle, from, &self.handle, to);
        renamed.map_err(|error| named(error, from))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let removed = unlinkat(&self.handle, name, AtFlags::empty());
        removed.map_err(|error| named(error, name))
    }

    fn sync_names(&self) -> io::Result<()> {
        self.handle.sync_all()
    }

    fn lock(&self) -> Result<Box<dyn MediumFile>, LockError> {
        Ok(Box::new(self.locked()?))
    }
}

/// The error of a file, with its name.
fn named(error: Errno, file: &str) -> io::Error {
    let is_of_all = matches!(error, Errno::MFILE | Errno::NFILE);
    let error = io::Error::from(error);
    if is_of_all {
        return error;
    }
    io::Error::new(error.kind(), format!("{file}: {error}"))
}

/// The locked file. Once its name is gone or leads to another file, it locks nothing, and cannot be read.
struct LockFile {
    file: File,
    /// Its device and its inode, which no other file has while it is open.
    number: (u64, u64),
    directory: Arc<File>,
    /// The process that has locked it.
    pid: u32,
}

impl LockFile {
    fn has_its_name(&self) -> io::Result<bool> {
        match statat(&self.directory, LOCK, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(false),
            named => {
                let named = named?;
                Ok((named.st_dev, named.st_ino) == self.number)
            }
        }
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // Closing it is not enough: a forked child that has not yet begun its own program has the file open, too.
        if self.pid == process::id() {
            let _unlocked = flock(&self.file, FlockOperation::Unlock);
        }
    }
}

impl MediumFile for LockFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        if !self.has_its_name()? {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.file.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        MediumFile::sync(&self.file)
    }

    fn cut(&self, len: u64) -> io::Result<()> {
        self.file.cut(len)
    }

    fn len(&self) -> io::Result<u64> {
        MediumFile::len(&self.file)
    }
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
                // See `Directory::open`.
                Err(Errno::BADF) => {
                    let text = "this user may read a file of the directory and not write to it; let the user own all of them";
                    return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
                }
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_error_of_a_file_names_it_and_is_of_the_same_kind() {
        let path = tempfile::tempdir().unwrap();
        for directory in [Directory::open(&path), Directory::read_only(&path)] {
            let error = directory.unwrap().open("1.segment").err().unwrap();
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
            assert!(error.to_string().starts_with("1.segment: "), "{error}");
        }
    }

    #[test]
    fn what_is_no_regular_file_is_named_and_not_waited_for() {
        let path = tempfile::tempdir().unwrap();
        fs::create_dir(path.path().join("1.segment")).unwrap();
        let pipe = path.path().join("2.segment");
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, fifo, Mode::RWXU, 0).unwrap();
        for directory in [Directory::open(&path), Directory::read_only(&path)] {
            let directory = directory.unwrap();
            for name in ["1.segment", "2.segment"] {
                let error = directory.open(name).err().unwrap().to_string();
                assert!(error.contains(name) && error.contains("Move it"), "{error}");
            }
        }
    }

    #[test]
    fn a_key_that_others_may_read_is_found() {
        let path = tempfile::tempdir().unwrap();
        let directory = Directory::open(&path).unwrap();
        let keys = format!("{:016x}.keys", 1);
        drop(Medium::create(&directory, &keys).unwrap());
        drop(Medium::create(&directory, "1.segment").unwrap());
        for (of_directory, of_keys, is_found) in [
            (0o755, 0o600, false),
            (0o700, 0o644, false),
            (0o750, 0o604, false),
            (0o755, 0o604, true),
            (0o710, 0o640, true),
        ] {
            let set = |path: &Path, mode| {
                fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            };
            set(path.path(), of_directory);
            set(&path.path().join(&keys), of_keys);
            set(&path.path().join("1.segment"), 0o644);
            let found = is_found.then_some(&keys);
            let modes = format!("{of_directory:o} {of_keys:o}");
            assert_eq!(directory.key_for_others().as_ref(), found, "{modes}");
        }
    }

    #[test]
    fn what_may_only_be_read_says_so_when_it_is_written_to() {
        let path = tempfile::NamedTempFile::new().unwrap();
        let file = File::open(path.path()).unwrap();
        let error = file.write_at(b"x", 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
    }

    #[test]
    fn a_forked_child_does_not_give_its_parents_lock_back() {
        let path = tempfile::tempdir().unwrap();
        let directory = Directory::open(&path).unwrap();
        let lock = directory.locked().unwrap();
        let of_child = LockFile {
            file: lock.file.try_clone().unwrap(),
            number: lock.number,
            directory: Arc::clone(&lock.directory),
            pid: lock.pid + 1,
        };
        drop(of_child);
        assert!(matches!(directory.lock(), Err(LockError::Held { .. })));
    }

    #[test]
    fn a_lock_that_a_forked_child_has_as_well_is_given_back() {
        let path = tempfile::tempdir().unwrap();
        let directory = Directory::open(&path).unwrap();
        let lock = directory.locked().unwrap();
        let of_child = lock.file.try_clone().unwrap();
        assert!(matches!(directory.lock(), Err(LockError::Held { .. })));
        drop(lock);
        drop(directory.lock().unwrap());
        drop(of_child);
    }
}
