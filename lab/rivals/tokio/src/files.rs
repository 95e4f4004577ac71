//! The files of `stall` with offender=file: a FIFO that nobody writes, which each offender reads to its end, and a small
//! file, which each tick reads before it looks up a name.

use std::fs::OpenOptions;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use common::fail;

/// Both are removed on drop.
pub(crate) struct Files {
    fifo: PathBuf,
    small: PathBuf,
}

impl Files {
    pub(crate) fn new() -> Self {
        let path = |what: &str| {
            let name = format!("rival-tokio-{what}-{}", std::process::id());
            std::env::temp_dir().join(name)
        };
        let files = Self {
            fifo: path("fifo"),
            small: path("tick"),
        };
        let made = Command::new("mkfifo").arg(&files.fifo).status();
        if !made.is_ok_and(|status| status.success()) {
            fail("mkfifo failed in the folder for temporary files.");
        }
        if std::fs::write(&files.small, "small").is_err() {
            fail("The folder for temporary files cannot be written.");
        }
        files
    }

    /// Starts a reader of the FIFO.
    pub(crate) fn start_reader(&self) {
        let fifo = self.fifo.clone();
        tokio::spawn(async move {
            let _nothing = tokio::fs::read(fifo).await;
        });
    }

    /// What a tick does.
    pub(crate) async fn read(&self) -> io::Result<()> {
        tokio::fs::read(&self.small).await?;
        let _addresses = tokio::net::lookup_host("localhost:80").await?;
        Ok(())
    }
}

impl Drop for Files {
    /// Lets the readers go that have opened the FIFO or are about to; those that still wait for a thread find it gone.
    fn drop(&mut self) {
        let both = OpenOptions::new().read(true).write(true).open(&self.fifo);
        let _removed = std::fs::remove_file(&self.fifo);
        let _gone = std::fs::remove_file(&self.small);
        drop(both);
    }
}
