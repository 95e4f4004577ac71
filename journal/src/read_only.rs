//! A medium that is only read: whatever would change a file or a name is refused before it reaches the medium.

use std::io;
use std::sync::Arc;

use crate::medium::{LockError, Medium, MediumFile};

/// A medium for reading.
pub(crate) struct ReadOnly(pub(crate) Arc<dyn Medium>);

struct ReadOnlyFile(Box<dyn MediumFile>);

fn refused() -> io::Error {
    io::Error::new(
        io::ErrorKind::PermissionDenied,
        "it was opened for reading only",
    )
}

/// Nothing is written here, so there is nothing to sync.
fn synced(outcome: io::Result<()>) -> io::Result<()> {
    use io::ErrorKind::{InvalidInput, ReadOnlyFilesystem, Unsupported};
    match outcome {
        Err(error)
            if matches!(
                error.kind(),
                InvalidInput | ReadOnlyFilesystem | Unsupported
            ) =>
        {
            Ok(())
        }
        other => other,
    }
}

impl Medium for ReadOnly {
    fn name(&self) -> String {
        self.0.name()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.0.list()
    }

    fn create(&self, _: &str) -> io::Result<Box<dyn MediumFile>> {
        Err(refused())
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn MediumFile>> {
        Ok(Box::new(ReadOnlyFile(self.0.open(name)?)))
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        Err(refused())
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        Err(refused())
    }

    fn sync_names(&self) -> io::Result<()> {
        synced(self.0.sync_names())
    }

    fn lock(&self) -> Result<Box<dyn MediumFile>, LockError> {
        Err(LockError::Failed(refused()))
    }
}

impl MediumFile for ReadOnlyFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(bytes, offset)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        Err(refused())
    }

    fn sync(&self) -> io::Result<()> {
        synced(self.0.sync())
    }

    fn cut(&self, _: u64) -> io::Result<()> {
        Err(refused())
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
}
