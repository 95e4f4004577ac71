//! Check: every file can be parsed, because the other checks skip a file that cannot.

use super::Finding;
use super::repository::Repository;

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let errors = repository
        .our_rust()
        .filter_map(|file| Some((file, file.syntax().err()?)));
    let finding = |(file, error): (&super::repository::File, &syn::Error)| {
        let sentence = format!("The file cannot be parsed ({error}); fix it.");
        Finding::new(&file.path, error.span().start().line, sentence)
    };
    errors.map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::*;

    #[test]
    fn a_file_that_is_not_rust_is_found() {
        let made_up = MadeUp::new(&[("a.rs", "//! A leaf.\nfn f() {}\n")]);
        made_up.assert_none(check);
        made_up.write("a.rs", "//! A leaf.\nfn f( {}\n");
        assert_eq!(made_up.found(check).len(), 1);
        made_up.write("a.rs", "//! A leaf.\nfn fn() {}\n");
        made_up.assert_one(check, "a.rs:2", "cannot be parsed");
    }
}
