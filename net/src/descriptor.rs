//! A descriptor that is read and written when the system reports it ready: a pipe, a FIFO, a terminal, or a socket that
//! this program inherited.
//!
//! Invariants:
//! - A descriptor whose open file others share, as a shell shares its terminal with all its programs, is never set to
//!   non-blocking mode: that would change it for them too. Each transfer asks not to wait (`RWF_NOWAIT`) instead.
//! - Where the system refuses that, [`NEEDS_THREAD`] says that the descriptor is ready, but that only a thread that may
//!   block can do the transfer, because another reader of the same pipe may take the bytes first.
//!
//! Called by the files and by the ends of pipes.

use std::{
    fs,
    io::{self, IoSlice, IoSliceMut, Read, Write},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::fs::FileTypeExt,
    },
    sync::Arc,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, ReadWriteFlags, ioctl_fionbio, preadv2, pwritev2},
};
use weald_kernel::IoSource;

/// The error of a transfer that only a thread can do.
pub(crate) const NEEDS_THREAD: io::ErrorKind = io::ErrorKind::Unsupported;

/// The offset that stands for the file's own position.
const AT_POSITION: u64 = u64::MAX;

/// Whether other programs may use the open file behind a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Only this program, which opened it: it is non-blocking.
    Own,
    /// Perhaps other programs, too: it stays in its mode.
    Shared,
}

/// A descriptor that the reactor watches.
#[derive(Debug)]
pub(crate) struct Descriptor {
    file: Arc<fs::File>,
    sharing: Sharing,
}

impl Descriptor {
    /// Registers `file` with the reactor. None if the system reports no readiness for it, as for a regular file.
    pub(crate) fn watch(
        file: Arc<fs::File>,
        sharing: Sharing,
    ) -> io::Result<Option<IoSource<Descriptor>>> {
        match IoSource::new_ready(Descriptor { file, sharing }) {
            Ok(source) => {
                if sharing == Sharing::Own {
                    ioctl_fionbio(&source, true)?;
                }
                Ok(Some(source))
            }
            Err(error) if Errno::from_io_error(&error) == Some(Errno::PERM) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn is_own(&self) -> bool {
        self.sharing == Sharing::Own
    }

    /// Reads without waiting.
    ///
    /// # Errors
    /// Those of the system; `WouldBlock` if there is nothing to read; [`NEEDS_THREAD`].
    pub(crate) fn read_now(&self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_own() {
            return (&*self.file).read(buffer);
        }
        let mut buffers = [IoSliceMut::new(buffer)];
        let read = preadv2(self, &mut buffers, AT_POSITION, ReadWriteFlags::NOWAIT);
        read.or_else(|error| self.explain(error, PollFlags::IN))
    }

    /// Writes without waiting.
    ///
    /// # Errors
    /// As [`read_now`](Descriptor::read_now).
    pub(crate) fn write_now(&self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_own() {
            return (&*self.file).write(bytes);
        }
        let buffers = [IoSlice::new(bytes)];
        let written = pwritev2(self, &buffers, AT_POSITION, ReadWriteFlags::NOWAIT);
        written.or_else(|error| self.explain(error, PollFlags::OUT))
    }

    fn explain(&self, error: Errno, wanted: PollFlags) -> io::Result<usize> {
        let cannot = [Errno::OPNOTSUPP, Errno::NOSYS, Errno::INVAL, Errno::SPIPE];
        if !cannot.contains(&error) {
            return Err(error.into());
        }
        let mut one = [PollFd::new(self, wanted)];
        match poll(&mut one, Some(&Timespec::default()))? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            _ => Err(NEEDS_THREAD.into()),
        }
    }
}

/// A file whose transfers block the calling thread until they are possible, although another program may have made the
/// open file non-blocking.
pub(crate) struct Blocking<'a>(pub(crate) &'a fs::File);

impl Read for Blocking<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut file = self.0;
        retry_when(file, PollFlags::IN, || file.read(buffer))
    }
}

impl Write for Blocking<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut file = self.0;
        retry_when(file, PollFlags::OUT, || file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Repeats a transfer that the system refuses for now when it may succeed.
fn retry_when(
    file: &fs::File,
    ready: PollFlags,
    mut transfer: impl FnMut() -> io::Result<usize>,
) -> io::Result<usize> {
    loop {
        match transfer() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                match poll(&mut [PollFd::new(file, ready)], None) {
                    // An interrupted wait is a short one.
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            moved => return moved,
        }
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Whether a transfer may wait for somebody else, and not only for a device: the system reports readiness.
pub(crate) fn may_wait(file: &fs::File) -> io::Result<bool> {
    let kind = file.metadata()?.file_type();
    Ok(kind.is_fifo() || kind.is_char_device() || kind.is_socket())
}

#[cfg(test)]
mod tests {
    use std::{os::fd::OwnedFd, thread};

    use super::*;

    #[test]
    fn a_thread_waits_although_another_program_has_made_the_file_non_blocking() {
        const LENGTH: usize = 1 << 20;
        let (reader, writer) = io::pipe().unwrap();
        let [reader, writer] = [OwnedFd::from(reader), OwnedFd::from(writer)].map(fs::File::from);
        ioctl_fionbio(&reader, true).unwrap();
        ioctl_fionbio(&writer, true).unwrap();
        let reads = thread::spawn(move || {
            let mut buffer = [0; 4096];
            let mut length = 0;
            while length < LENGTH {
                length += Blocking(&reader).read(&mut buffer).unwrap();
            }
            assert_eq!(length, LENGTH);
        });
        Blocking(&writer).write_all(&vec![7; LENGTH]).unwrap();
        reads.join().unwrap();
    }
}
