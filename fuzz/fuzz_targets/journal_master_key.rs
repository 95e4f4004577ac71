//! The file of a master key: 32 bytes, or 64 hexadecimal digits and white space behind them. What is read is written as
//! a file that is read as the same key; anything else is refused.

#![no_main]

use std::fs;
use std::path::{Path, PathBuf};

use libfuzzer_sys::fuzz_target;
use weald_journal::MasterKey;

/// How many bytes of the file count.
const LONGEST: usize = 1024;

fuzz_target!(|bytes: &[u8]| {
    let file = place("read");
    fs::write(&file, bytes).expect("the directory for short-lived files takes one");
    let bytes = &bytes[..bytes.len().min(LONGEST)];
    let digits = str::from_utf8(bytes).unwrap_or_default().trim_end();
    let is_text = digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    match MasterKey::read(&file) {
        Ok(key) => {
            assert!(bytes.len() == 32 || is_text, "{bytes:?}");
            let written = write(&key, "once");
            if bytes.len() != 32 {
                assert_eq!(written.trim_end(), digits.to_ascii_lowercase());
            }
            let again = MasterKey::read(place("once")).expect("what is written is read");
            assert_eq!(write(&again, "twice"), written);
        }
        Err(error) => {
            assert!(bytes.len() != 32 && !is_text, "{bytes:?}");
            assert!(
                error.to_string().contains("64 hexadecimal digits"),
                "{error}"
            );
        }
    }
});

/// A file of this process.
fn place(name: &str) -> PathBuf {
    let shared = Path::new("/dev/shm");
    let directory = if shared.is_dir() {
        shared.to_owned()
    } else {
        std::env::temp_dir()
    };
    directory.join(format!("weald-fuzz-{}-{name}", std::process::id()))
}

/// Writes a new file, and returns what is in it.
fn write(key: &MasterKey, name: &str) -> String {
    let file = place(name);
    let _is_gone = fs::remove_file(&file);
    key.write(&file)
        .expect("the directory for short-lived files takes one");
    fs::read_to_string(&file).expect("it was written a moment ago")
}
