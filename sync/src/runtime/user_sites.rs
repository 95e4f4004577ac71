//! Which lines are the program's own. A future that is polled learns of the line of the poll, which is that of an
//! `.await`; but it may be one of Weald's, or of the standard library.
//!
//! Paths are compared once for each line. Then the line is found in a table, which no thread writes any more.

use std::{
    panic::Location,
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

/// How many lines the table has room for. A line whose place another one has is judged again and again.
const PLACES: usize = 256;
/// Set in the address of a line that is not the program's own. Lines are aligned to eight.
const OF_WEALD: usize = 1;

/// The lines that were judged. Relaxed: a line lives for ever, and the judgement is in the same word.
static JUDGED: [AtomicPtr<Location<'static>>; PLACES] =
    [const { AtomicPtr::new(ptr::null_mut()) }; PLACES];

/// The line, if it is the program's own.
#[inline]
pub fn user_site(site: &'static Location<'static>) -> Option<&'static Location<'static>> {
    let line = ptr::from_ref(site).cast_mut();
    // Lines are neighbours in memory, 24 bytes each.
    let judged = &JUDGED[(line.addr() >> 3) % PLACES];
    let known = judged.load(Ordering::Relaxed);
    if known == line {
        return Some(site);
    }
    let of_weald = line.map_addr(|address| address | OF_WEALD);
    if known == of_weald {
        return None;
    }
    let is_own = !is_of_weald(site.file()) && !is_of_std(site.file());
    if known.is_null() {
        judged.store(if is_own { line } else { of_weald }, Ordering::Relaxed);
    }
    is_own.then_some(site)
}

/// The path of this file within the folder of its crate.
const WITHIN_CRATE: &str = "/src/runtime/user_sites.rs";

/// Whether a file is in the sources of a crate of Weald. The crates are neighbours in one folder, also where cargo has
/// unpacked them, and there have names such as `weald-sync-0.1.0`.
fn is_of_weald(file: &str) -> bool {
    let this = file!().strip_suffix(WITHIN_CRATE);
    let this = this.expect("the path of this file");
    let (folder, _) = this.rsplit_once('/').unwrap_or(("", this));
    let within = match folder {
        "" => Some(file),
        _ => file
            .strip_prefix(folder)
            .and_then(|rest| rest.strip_prefix('/')),
    };
    let Some((name, within)) = within.and_then(|within| within.split_once('/')) else {
        return false;
    };
    let is_crate = CRATES.contains(&name) || name.starts_with("weald-");
    is_crate && within.starts_with("src/") || name == "c"
}

/// The folders of the crates whose code polls the futures of others.
const CRATES: [&str; 10] = [
    "board", "fiber", "forest", "http", "journal", "kernel", "net", "process", "sync", "weald",
];

fn is_of_std(file: &str) -> bool {
    file.starts_with("/rustc/") || file.contains("/rustlib/src/rust/library/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_test_is_the_programs_own_and_one_of_weald_is_not() {
        assert!(is_of_weald(file!()));
        let kernel = file!().replace("sync/src", "kernel/src");
        assert!(is_of_weald(&kernel));
        for own in ["kernel/tests", "sync/examples", "lab/src"] {
            let own = file!().replace("sync/src", own);
            assert!(!is_of_weald(&own), "{own}");
        }
        assert!(!is_of_weald("/user/sync/src/main.rs"));
        assert!(!is_of_weald("main.rs"));
        assert!(is_of_std(
            "/rustc/0123abc/library/core/src/future/future.rs"
        ));
        for _ in 0..2 {
            assert_eq!(user_site(Location::caller()), None);
        }
    }
}
