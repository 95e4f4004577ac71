//! Check: every Rust file opens with a head that says what it is.
//!
//! Attributes of the whole file (`#![…]`) may precede the head; a licence or code may not.

use super::Finding;
use super::repository::{File, Repository};

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    repository.all_rust().filter_map(finding).collect()
}

fn finding(file: &File) -> Option<Finding> {
    let mut lines = file.text.lines().enumerate();
    let opening = lines.find(|(_, line)| !line.trim().is_empty() && !line.starts_with("#!["));
    let (at, line) = opening.unwrap_or((0, ""));
    let sentence = match line.strip_prefix("//!") {
        None => "The file does not open with a head; say in one `//!` sentence what it is.",
        Some(head) if head.split_whitespace().count() < 2 => {
            "The head of the file says nothing; say in one sentence what the file is."
        }
        Some(_) => return None,
    };
    Some(Finding::new(&file.path, at + 1, sentence))
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::*;

    #[test]
    fn a_head_passes_also_below_attributes_of_the_file() {
        let made_up = MadeUp::new(&[
            ("a.rs", "//! A leaf.\n\nfn f() {}\n"),
            ("b.rs", "#![cfg(loom)]\n\n//! Models of the deque.\n"),
        ]);
        made_up.assert_none(check);
    }

    #[test]
    fn a_file_without_a_head_is_found_also_in_a_rival() {
        for path in ["kernel/src/a.rs", "lab/rivals/tokio/src/main.rs"] {
            for text in [
                "",
                "fn f() {}\n//! Late.\n",
                "// A comment is no head.\n",
                "/// Nor this.\n",
            ] {
                let made_up = MadeUp::new(&[(path, text)]);
                made_up.assert_one(check, &format!("{path}:1"), "does not open with a head");
            }
        }
    }

    #[test]
    fn an_empty_head_is_found() {
        MadeUp::new(&[("a.rs", "#![cfg(loom)]\n//!\n")]).assert_one(
            check,
            "a.rs:2",
            "says nothing",
        );
    }
}
