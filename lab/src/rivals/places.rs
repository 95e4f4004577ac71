//! The folders of the rivals: where their sources are, and where they are built.

use std::path::{Path, PathBuf};

use crate::error::Error;

/// Where rivals come from, and where they are built.
#[derive(Clone, Debug)]
pub struct Places {
    /// The folder with the sources and `rivals.toml`.
    pub sources: PathBuf,
    /// The folder to build them in.
    pub out: PathBuf,
}

impl Places {
    /// The default places: the checkout that this program was built from if it still exists, else the
    /// current folder.
    #[must_use]
    pub fn usual() -> Self {
        let built_from = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
        let checkout = built_from
            .filter(|folder| folder.join("lab/rivals").is_dir())
            .map_or_else(|| PathBuf::from("."), Path::to_path_buf);
        Self {
            sources: checkout.join("lab/rivals"),
            out: checkout.join("target/rivals"),
        }
    }

    /// Rivals are built and run in another folder than this program, so relative paths would be wrong.
    pub(super) fn absolute(&self) -> Result<Self, Error> {
        std::fs::create_dir_all(&self.out).map_err(Error::file("create", &self.out))?;
        let resolve = |path: &Path| path.canonicalize().map_err(Error::file("find", path));
        Ok(Self {
            sources: resolve(&self.sources)?,
            out: resolve(&self.out)?,
        })
    }
}
