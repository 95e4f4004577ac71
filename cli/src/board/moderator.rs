//! The moderators' passphrase: a file with the passphrase or with its hash, or the hash itself.
//!
//! A file that others can read is no place for a passphrase, and one that others can write is none for a hash.

use std::fs::{File, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use weald_board::model::{Hashed, check_passphrase};
use weald_lab::error::Error;

/// How many bytes a file may have, so that a wrong name does not fill the memory.
const MOST: u64 = 4_096;

/// The bits of a file's mode that give anybody but its owner access to it, and those that let them write it.
const OTHERS: u32 = 0o077;
const OTHERS_WRITE: u32 = 0o022;

/// The hash of the moderators' passphrase, if there are moderators.
pub(super) fn hash(file: Option<&Path>, hash: Option<&str>) -> Result<Option<Hashed>, Error> {
    match (file, hash) {
        (Some(file), _) => of_file(file).map(Some),
        (None, Some(hash)) => of_hash(hash, "the moderators' hash").map(Some),
        (None, None) => Ok(None),
    }
}

fn of_file(path: &Path) -> Result<Hashed, Error> {
    let open = || {
        let file = File::open(path)?;
        let permissions = file.metadata()?.permissions();
        let mut text = String::new();
        file.take(MOST).read_to_string(&mut text)?;
        Ok((text, permissions))
    };
    let (text, permissions) = open().map_err(Error::file("read", path.to_owned()))?;
    let (text, name) = (text.trim(), path.display().to_string());
    if text.starts_with('$') {
        refuse(&permissions, OTHERS_WRITE, &name, "write")?;
        return of_hash(text, &name);
    }
    refuse(&permissions, OTHERS, &name, "read")?;
    check_passphrase(text).map_err(|invalid| Error::Usage(format!("{name}: {invalid}")))?;
    Ok(Hashed::of(text))
}

fn of_hash(text: &str, name: &str) -> Result<Hashed, Error> {
    text.parse()
        .map_err(|error| Error::Usage(format!("{name}: {error}")))
}

fn refuse(permissions: &Permissions, bits: u32, name: &str, what: &str) -> Result<(), Error> {
    let mode = permissions.mode();
    if mode & bits == 0 {
        return Ok(());
    }
    let mode = mode & 0o777;
    let sentence = format!("others can {what} {name} (mode {mode:o}); run: chmod 600 {name}");
    Err(Error::Usage(sentence))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    const SECRET: &str = "correct horse battery";

    #[test]
    fn a_file_that_others_can_read_has_no_passphrase_and_may_have_a_hash() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("moderators");
        let with = |text: &str, mode| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            hash(Some(&path), None)
        };
        let whole = with(&format!("{SECRET}\n"), 0o600).unwrap().unwrap();
        assert!(whole.fits(SECRET));
        let same = with(whole.as_str(), 0o644).unwrap();
        assert_eq!(same.as_ref(), Some(&whole));
        for (text, mode, told) in [
            (SECRET, 0o640, "others can read"),
            (SECRET, 0o604, "chmod 600"),
            (whole.as_str(), 0o622, "others can write"),
            ("short", 0o600, "at least 10 characters"),
            ("$argon2i$", 0o600, "begins with $argon2id$"),
        ] {
            let error = with(text, mode).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(hash(Some(&path), None).is_err());
        assert_eq!(hash(None, Some(whole.as_str())).unwrap(), Some(whole));
        assert!(hash(None, Some(SECRET)).is_err());
    }
}
