//! The page of a running bench: it is written anew whenever rows are finished, so it is complete at any moment.

use std::path::Path;

use weald_lab::alternate::RowResult;
use weald_lab::error::Error;
use weald_lab::report::{self, Source};
use weald_lab::rivals::Missing;
use weald_lab::system::System;

/// A page on its way; nothing if none was asked for.
pub(super) struct Page<'a> {
    path: Option<&'a Path>,
    source: Source<'a>,
}

impl<'a> Page<'a> {
    /// Writes the page that has no rows yet, unless there is an older page: that stays until a row has been measured.
    pub(super) fn begin(path: Option<&'a Path>, command: &'a str) -> Result<Self, Error> {
        let source = Source {
            results: &[],
            systems: &[],
            missing: &[],
            command,
            has_ended: false,
            busy: None,
        };
        let page = Self { path, source };
        match path.filter(|path| has_content(path)) {
            Some(older) => report::check(older)?,
            None => page.write(&[], None)?,
        }
        Ok(page)
    }

    /// Names what is measured.
    pub(super) fn measures(&mut self, systems: &'a [System], missing: &'a [Missing]) {
        (self.source.systems, self.source.missing) = (systems, missing);
    }

    /// Writes the page with the rows that are finished, on a machine that is as busy as the sentence tells.
    pub(super) fn write(&self, results: &[RowResult], busy: Option<&str>) -> Result<(), Error> {
        let Some(path) = self.path else {
            return Ok(());
        };
        let source = Source {
            results,
            busy,
            ..self.source
        };
        report::write(source, path)
    }

    /// The same for the last time.
    pub(super) fn end(&mut self, results: &[RowResult], busy: Option<&str>) -> Result<(), Error> {
        self.source.has_ended = true;
        self.write(results, busy)
    }
}

fn has_content(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|known| known.is_file() && known.len() > 0)
}
