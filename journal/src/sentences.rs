//! Debug of an error is its sentence: a program prints with Debug what its `main` returns.

use std::fmt;

use crate::error::OpenError;
use crate::medium::LockError;
use crate::open_forest_error::OpenForestError;
use crate::past::PastError;

macro_rules! debug_is_sentence {
    ($($error:ty),+) => {$(
        impl fmt::Debug for $error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )+};
}

debug_is_sentence!(OpenError, LockError, OpenForestError, PastError);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_main_returns_is_printed_as_a_sentence() {
        let open = OpenError::Locked {
            medium: "notes".to_owned(),
            error: LockError::Held { pid: 7 },
        };
        let error: Box<dyn std::error::Error> = Box::new(OpenForestError::from(open));
        let text = format!("{error:?}");
        assert!(
            text.starts_with("notes: it is open for writing in the process 7"),
            "{text}"
        );
    }

    #[test]
    fn a_file_is_refused_in_the_same_words_for_reading_and_for_writing() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let said = |error: Option<OpenError>| error.map(|error| error.to_string());
        for path in [file.path().to_owned(), file.path().join("below")] {
            let reading = said(crate::ReadOnlyJournal::open(&path).err());
            let writing = said(crate::DiskJournal::open(&path).err());
            assert!(
                reading.as_ref().is_some_and(|text| text.contains("file")),
                "{reading:?}"
            );
            assert_eq!(reading, writing);
        }
    }
}
