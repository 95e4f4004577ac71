//! The medium below a journal: a directory of files, reduced to what a journal needs, so that a real directory and a
//! simulated disk can be exchanged.
//!
//! What a journal assumes about any medium is in `docs/journal.md`.

use std::io;

use rustix::io::Errno;
use weald_forest::journal::catch_foreign;

/// Why a directory cannot be locked for writing.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Another process, or another journal of this process, has it.
    #[error(
        "it is open for writing in the process {pid}, or in one that was forked from it; close it there first"
    )]
    Held {
        /// The process, as it noted itself; 0 if it has not.
        pid: u32,
    },
    /// The lock cannot be reached.
    #[error("its file `lock` cannot be written to: {0}")]
    Failed(#[from] io::Error),
}

/// A directory of files. Names have no folders in them.
pub trait Medium: Send + Sync + 'static {
    /// What it is called in messages.
    fn name(&self) -> String;

    /// The names of all files.
    ///
    /// # Errors
    /// The directory cannot be read.
    fn list(&self) -> io::Result<Vec<String>>;

    /// A new, empty file for reading and writing. One that has the name is replaced.
    ///
    /// # Errors
    /// It cannot be created.
    fn create(&self, name: &str) -> io::Result<Box<dyn MediumFile>>;

    /// A file that exists, for reading and writing.
    ///
    /// # Errors
    /// It cannot be opened; [`NotFound`](io::ErrorKind::NotFound), if there is none.
    fn open(&self, name: &str) -> io::Result<Box<dyn MediumFile>>;

    /// Renames a file. One that has the new name is replaced, at one instant.
    ///
    /// # Errors
    /// It cannot be renamed.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// It cannot be removed.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes all changes of names durable.
    ///
    /// # Errors
    /// They may not be durable.
    fn sync_names(&self) -> io::Result<()>;

    /// Locks the directory against other writers until the file is dropped. The file names the process that has the
    /// lock. Reading it fails once another file is what the next writer would lock: then this is the lock of nothing.
    ///
    /// # Errors
    /// [`LockError`].
    fn lock(&self) -> Result<Box<dyn MediumFile>, LockError>;
}

/// An open file.
pub trait MediumFile: Send + Sync {
    /// Reads from an offset; fewer bytes than asked for only at the end of the file.
    ///
    /// # Errors
    /// They cannot be read.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes at an offset, and returns how many bytes were written. Where there is room for some of them, a medium
    /// that is full may write those, and fail only the next time.
    ///
    /// # Errors
    /// Any number of them may have been written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Makes all that was written durable.
    ///
    /// # Errors
    /// Bytes that were written since the last sync may be lost, and a later call does not report
    /// that.
    fn sync(&self) -> io::Result<()>;

    /// Cuts off what is behind this length. It may still be there after the loss of power, unless a sync came after.
    ///
    /// # Errors
    /// Some of it may be cut off.
    fn cut(&self, len: u64) -> io::Result<()>;

    /// Its length.
    ///
    /// # Errors
    /// It cannot be told.
    fn len(&self) -> io::Result<u64>;

    /// Whether it is empty.
    ///
    /// # Errors
    /// It cannot be told.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// Writes all bytes, or fails: after a short write the medium is not asked for the rest.
pub(crate) fn write_all(file: &dyn MediumFile, bytes: &[u8], offset: u64) -> io::Result<()> {
    let written = file.write_at(bytes, offset)?;
    if written < bytes.len() {
        let text = format!("only {written} of {} bytes were written", bytes.len());
        return Err(io::Error::new(io::ErrorKind::WriteZero, text));
    }
    Ok(())
}

/// Writes all bytes of a file that does not count yet. A medium that is full writes what there is room for, and tells
/// so only when it is asked for the rest.
pub(crate) fn write_whole(
    file: &dyn MediumFile,
    mut bytes: &[u8],
    mut offset: u64,
) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = file.write_at(bytes, offset)?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        offset += written as u64;
        bytes = &bytes[written..];
    }
    Ok(())
}

/// How many bytes are read at once, at most, of a file whose length nobody has checked.
pub(crate) const STEP: usize = 1 << 20;

/// At most this many bytes of a file, from an offset on; fewer only at its end.
pub(crate) fn read_some(file: &dyn MediumFile, offset: u64, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; most];
    let read = file.read_at(&mut bytes, offset)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// An error as text, even if it panics when it is shown: a medium may fail with an error of a type of its own.
pub(crate) fn text_of(error: &io::Error) -> String {
    catch_foreign(|| error.to_string())
        .unwrap_or_else(|| "its error panics when it is shown".to_owned())
}

/// Whether an error says that there is no room.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// Whether an error says that a file could not be opened or created, so that nothing was written.
pub(crate) fn is_unopened(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(
        errno,
        Some(Errno::MFILE | Errno::NFILE | Errno::ACCESS | Errno::PERM | Errno::NOMEM)
    )
}

/// Whether an error says that a file is not there, or that the medium cannot read a part of it.
pub(crate) fn is_unreadable(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::IO))
        || error.kind() == io::ErrorKind::NotFound
}

/// Adds to an error that says that there is no room what the room was for, and how much is needed.
pub(crate) fn for_room(name: &str, len: u64) -> impl Fn(io::Error) -> io::Error {
    move |error| {
        if !is_full(&error) {
            return error;
        }
        let why = text_of(&error);
        let text = format!("the disk is full: {name} needs at least {len} bytes ({why})");
        io::Error::new(error.kind(), text)
    }
}
