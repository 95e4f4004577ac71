//! A FIFO that nobody writes: what an offender of the kind `file` reads.

use std::fs::OpenOptions;
use std::path::PathBuf;
use std::process::Command;

use crate::error::Error;

/// Ends when the FIFO has been opened for writing and closed.
pub(super) async fn read(fifo: PathBuf) {
    let _nothing = weald::fs::read(fifo).await;
}

/// A FIFO that nobody writes before its end.
pub(super) struct Fifo {
    path: PathBuf,
}

impl Fifo {
    pub(super) fn new(run: usize) -> Result<Fifo, Error> {
        let name = format!("weald-stall-{}-{run}", std::process::id());
        let path = std::env::temp_dir().join(name);
        match Command::new("mkfifo").arg(&path).status() {
            Ok(status) if status.success() => Ok(Fifo { path }),
            failed => Err(Error::workload(format!(
                "`mkfifo {}` failed: {failed:?}.",
                path.display()
            ))),
        }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Lets the readers go: all of them have opened it when it is closed again, or never will wait.
    pub(super) fn end(&self) {
        let both = OpenOptions::new().read(true).write(true).open(&self.path);
        let _removed = std::fs::remove_file(&self.path);
        drop(both);
    }
}

impl Drop for Fifo {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.path);
    }
}
