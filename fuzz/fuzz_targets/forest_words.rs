//! The words of a forest: a text that is read as a version or as a cursor prints as one that is read as the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weald_forest::{Cursor, Version};

fuzz_target!(|text: &str| {
    if let Ok(version) = text.parse::<Version>() {
        assert_eq!(version.to_string(), text);
    }
    if let Ok(cursor) = text.parse::<Cursor>() {
        let printed = cursor.to_string();
        let again: Cursor = printed.parse().expect("what is printed is read");
        assert_eq!(again.to_string(), printed);
    }
});
