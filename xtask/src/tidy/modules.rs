//! Check: a module with children is `foo.rs` beside `foo/`, so that every file has a name of its own.

use super::Finding;
use super::repository::Repository;

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let ours = repository.all_rust().filter(|file| !file.is_of_a_rival());
    let nameless = ours.filter(|file| file.path.rsplit('/').next() == Some("mod.rs"));
    let sentence = |folder| format!("Call this module `{folder}.rs` and put it beside its folder.");
    nameless
        .map(|file| Finding::new(&file.path, 1, sentence(file.folder())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::*;

    #[test]
    fn a_named_module_passes() {
        MadeUp::new(&[
            ("kernel/src/timer.rs", ""),
            ("lab/rivals/a/src/b/mod.rs", ""),
        ])
        .assert_none(check);
    }

    #[test]
    fn a_nameless_module_is_found() {
        let made_up = MadeUp::new(&[("kernel/src/timer/mod.rs", "//! The timer wheel.\n")]);
        made_up.assert_one(check, "kernel/src/timer/mod.rs:1", "`kernel/src/timer.rs`");
    }
}
