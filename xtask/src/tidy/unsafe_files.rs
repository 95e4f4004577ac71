//! The files that use `unsafe`, and a check that no file permits it without need.
//!
//! The compiler denies `unsafe_code` in every other file, so nobody keeps a list by hand.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;

use super::Finding;
use super::repository::{File, Repository};

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    repository.our_rust().filter_map(idle_permission).collect()
}

/// Every file that uses `unsafe`, one per line, with the number of uses.
pub(super) fn list(repository: &Repository) -> String {
    let counted = repository.our_rust().map(|file| (file, uses(file)));
    let unsafe_ones = counted.filter(|(_, count)| *count > 0);
    unsafe_ones
        .map(|(file, count)| format!("{count:>4} {}\n", file.path))
        .collect()
}

fn idle_permission(file: &File) -> Option<Finding> {
    let permits = |line: &str| {
        line.starts_with("#![")
            && ["allow(unsafe_code", "expect(unsafe_code"]
                .iter()
                .any(|lint| line.contains(lint))
    };
    let line = file.text.lines().position(permits)? + 1;
    let sentence = "The file permits `unsafe` and has none; remove the permission.";
    (uses(file) == 0).then(|| Finding::new(&file.path, line, sentence))
}

fn uses(file: &File) -> usize {
    file.syntax()
        .map_or(0, |syntax| count(syntax.to_token_stream()))
}

fn count(tokens: TokenStream) -> usize {
    let count = |token| match token {
        TokenTree::Ident(word) => usize::from(word == "unsafe"),
        TokenTree::Group(group) => count(group.stream()),
        _ => 0,
    };
    tokens.into_iter().map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::*;

    #[test]
    fn files_that_use_unsafe_are_listed_and_comments_and_strings_are_not_uses() {
        let made_up = MadeUp::sound();
        let text = "//! Never unsafe.\n#![forbid(unsafe_code)]\nconst A: &str = \"unsafe\";\n";
        made_up.write("process/src/lib.rs", text);
        made_up.write(
            "kernel/src/a.rs",
            "//! A leaf.\nunsafe impl A for B {}\n#[unsafe(no_mangle)] fn f() {}\n",
        );
        made_up.write(
            "lab/rivals/a/src/main.rs",
            "//! A rival.\nfn f() { unsafe {} }\n",
        );
        assert_eq!(
            list(&made_up.load()),
            "   2 kernel/src/a.rs\n   1 kernel/src/slab.rs\n"
        );
        made_up.assert_none(check);
    }

    #[test]
    fn a_permission_that_is_not_needed_is_found() {
        for permission in [
            "#![allow(unsafe_code)]",
            "#![expect(unsafe_code, reason = \"x\")]",
        ] {
            let made_up = MadeUp::sound();
            made_up.write(
                "kernel/src/slab.rs",
                &format!("//! No longer unsafe.\n{permission}\n"),
            );
            made_up.assert_one(check, "kernel/src/slab.rs:2", "remove the permission");
        }
    }
}
