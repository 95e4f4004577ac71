//! A file, pipe or terminal that is open, and its place in the reactor if it has readiness.
//!
//! Called by the ends of pipes, and by a file that becomes a reader.

use std::{
    fs, io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    panic::Location,
    path::Path,
    pin::Pin,
    sync::Arc,
};

use rustix::io::ioctl_fionbio;
use weald_kernel::{IoSource, OperationName, offload_operation};

use crate::{
    descriptor::{Descriptor, Sharing},
    path_error::at_path,
};

/// A transfer that a thread does.
pub(crate) type OnThread<R> = Pin<Box<dyn Future<Output = io::Result<R>> + Send>>;

/// An open file, and its place in the reactor if it has readiness.
pub(crate) struct Opened {
    pub(crate) file: Arc<fs::File>,
    pub(crate) source: Option<IoSource<Descriptor>>,
    pub(crate) path: Arc<Path>,
    /// The line that opened it. Reports name it for what a thread does outside of jobs, because polls have no line.
    pub(crate) site: &'static Location<'static>,
}

impl Opened {
    #[track_caller]
    pub(crate) fn new(file: fs::File, sharing: Sharing, path: &Path) -> io::Result<Opened> {
        let file = Arc::new(file);
        Ok(Opened {
            source: Descriptor::watch(file.clone(), sharing)?,
            file,
            path: path.into(),
            site: Location::caller(),
        })
    }

    /// A duplicate, so that dropping it leaves the program's own descriptor open.
    #[track_caller]
    pub(crate) fn standard(descriptor: BorrowedFd<'_>, name: &str) -> io::Result<Opened> {
        let file = fs::File::from(descriptor.try_clone_to_owned()?);
        Opened::new(file, Sharing::Shared, name.as_ref())
    }

    #[track_caller]
    pub(crate) fn open(
        path: &Path,
        options: fs::OpenOptions,
    ) -> impl Future<Output = io::Result<Opened>> + use<> {
        let (site, path): (_, Arc<Path>) = (Location::caller(), path.into());
        let name = OperationName::file("opening", path.clone());
        let opened = path.clone();
        let open = move || {
            let file = options.open(&opened);
            file.map_err(|error| at_path("opening", &opened, error))
        };
        async move {
            let file = offload_operation(name, open).await?;
            let opened = Opened::new(file, Sharing::Own, &path)?;
            Ok(Opened { site, ..opened })
        }
    }

    pub(crate) fn into_fd(self) -> io::Result<OwnedFd> {
        if let Some(source) = self.source
            && source.into_inner().is_own()
        {
            ioctl_fionbio(&self.file, false)?;
        }
        match Arc::try_unwrap(self.file) {
            Ok(file) => Ok(file.into()),
            // A thread still uses it.
            Err(file) => file.as_fd().try_clone_to_owned(),
        }
    }
}
