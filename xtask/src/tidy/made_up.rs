//! A made-up repository in a temporary folder, for tests that see each check pass and fail.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, process};

use super::Finding;
use super::repository::Repository;

/// The number of made-up repositories in this run, so that each gets its own folder.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// A temporary folder that is removed with this value.
pub(crate) struct MadeUp {
    root: PathBuf,
}

impl MadeUp {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let root = env::temp_dir().join(format!("weald-tidy-{}-{number}", process::id()));
        fs::create_dir_all(&root).expect("the temporary folder is writable");
        let made_up = Self { root };
        for (path, text) in files {
            made_up.write(path, text);
        }
        made_up
    }

    /// Two crates and an architecture page that keep every rule.
    pub(super) fn sound() -> Self {
        let manifest = |name: &str, rest: &str| {
            format!("[package]\nname = \"{name}\"\n[lints]\nworkspace = true\n{rest}")
        };
        Self::new(&[
            (
                "Cargo.toml",
                "[workspace]\nmembers = [\"kernel\", \"process\"]\n[workspace.dependencies]\n\
                 weald-kernel = { path = \"kernel\" }\n",
            ),
            ("kernel/Cargo.toml", &manifest("weald-kernel", "")),
            (
                "process/Cargo.toml",
                &manifest(
                    "weald-process",
                    "[dependencies]\nweald-kernel.workspace = true\n",
                ),
            ),
            (
                "kernel/src/lib.rs",
                "//! The kernel decides.\n\nmod slab;\n",
            ),
            (
                "kernel/src/slab.rs",
                "//! Pools of memory.\n#![allow(unsafe_code)]\n\nfn f() {\n    unsafe { g() }\n}\n",
            ),
            ("process/src/lib.rs", "//! Processes have mailboxes.\n"),
            ("ARCHITECTURE.md", ARCHITECTURE),
        ])
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Writes a file, or overwrites it.
    pub(super) fn write(&self, path: &str, text: &str) {
        let place = self.root.join(path);
        let folder = place.parent().expect("a file is in a folder");
        fs::create_dir_all(folder).expect("the temporary folder is writable");
        fs::write(place, text).expect("the temporary folder is writable");
    }

    pub(super) fn load(&self) -> Repository {
        Repository::load(&self.root).expect("the made-up repository can be read")
    }

    /// What `check` finds here, each finding as it is printed.
    pub(super) fn found(&self, check: fn(&Repository) -> Vec<Finding>) -> Vec<String> {
        check(&self.load())
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    /// Asserts that `check` has one finding here, at `place` (`path:line`), that says `words`.
    #[track_caller]
    pub(super) fn assert_one(
        &self,
        check: fn(&Repository) -> Vec<Finding>,
        place: &str,
        words: &str,
    ) {
        let found = self.found(check);
        assert_eq!(
            found.len(),
            1,
            "expected one finding at {place}, got {found:#?}"
        );
        assert!(
            found[0].starts_with(&format!("{place} ")),
            "not at {place}: {}",
            found[0]
        );
        assert!(
            found[0].contains(words),
            "does not say {words:?}: {}",
            found[0]
        );
    }

    /// Asserts that `check` finds nothing here.
    #[track_caller]
    pub(super) fn assert_none(&self, check: fn(&Repository) -> Vec<Finding>) {
        assert_eq!(self.found(check), Vec::<String>::new());
    }
}

impl Drop for MadeUp {
    fn drop(&mut self) {
        // A folder left in the temporary folder does no harm.
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// The page of the sound repository.
pub(super) const ARCHITECTURE: &str = "\
# Architecture

## Crates

| crate | its job | depends on | largest circle |
|---|---|---|---|
| `kernel` | decides which job runs next | – | 1 |
| `process` | pids and mailboxes | `kernel` | 1 |

## Absent

Nothing else, see `kernel/src/lib.rs`.
";
