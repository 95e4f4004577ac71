//! Check: `unsafe` stands in the modules that ARCHITECTURE.md lists, and in each of them.
//!
//! The permission to use it, `allow(unsafe_code)`, is held to the same list.

use super::Finding;
use super::architecture::{self, PAGE};
use super::repository::Repository;
use super::rust::Rust;

const KEYWORD: &str = "unsafe";
const LINT: &str = "unsafe_code";

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let listed = match architecture::unsafe_modules(repository) {
        Ok(listed) => listed,
        Err(finding) => return vec![finding],
    };
    let mut findings = Vec::new();
    for (file, rust) in repository.our_rust() {
        if listed.iter().all(|module| module.path != file.path) {
            findings.extend(uses(&rust).iter().map(|(line, what)| {
                let sentence =
                    format!("`{what}` stands in a file that {PAGE} does not list under Unsafe.");
                Finding::new(&file.path, *line, sentence)
            }));
        }
    }
    for module in &listed {
        let file = repository.file(&module.path);
        let path = &module.path;
        let sentence = match file.map(|file| Rust::read(&file.text)) {
            None => format!("`{path}` is listed as unsafe and does not exist."),
            Some(rust) if rust.words().iter().all(|(_, word)| *word != KEYWORD) => {
                format!(
                    "`{path}` is listed as unsafe and has no `{KEYWORD}`; take it off the list."
                )
            }
            Some(_) => continue,
        };
        findings.push(Finding::new(PAGE, module.line, sentence));
    }
    findings
}

/// The lines that use `unsafe` or permit it, each with what stands there.
fn uses(rust: &Rust) -> Vec<(usize, &'static str)> {
    let words = rust.words();
    let keywords = words
        .iter()
        .filter(|(_, word)| *word == KEYWORD)
        .map(|(at, _)| (*at, KEYWORD));
    let permissions = words
        .windows(2)
        .filter(|pair| pair[1].1 == LINT)
        .filter_map(|pair| {
            let what = match pair[0].1 {
                "allow" => "allow(unsafe_code)",
                "expect" => "expect(unsafe_code)",
                "warn" => "warn(unsafe_code)",
                _ => return None,
            };
            Some((pair[0].0, what))
        });
    keywords
        .chain(permissions)
        .map(|(at, what)| (rust.line_of(at), what))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::*;

    const ELSEWHERE: &str = "process/src/lib.rs";

    #[test]
    fn a_listed_module_passes_and_so_do_comments_strings_and_rivals() {
        let made_up = MadeUp::sound();
        made_up.write(
            ELSEWHERE,
            "//! Never unsafe.\n#![forbid(unsafe_code)]\nconst A: &str = \"unsafe\";\n",
        );
        made_up.write(
            "lab/rivals/a/src/main.rs",
            "//! A rival.\nfn f() { unsafe {} }\n",
        );
        made_up.assert_none(check);
    }

    #[test]
    fn unsafe_elsewhere_is_found() {
        for line in [
            "unsafe fn f() {}",
            "unsafe impl Send for A {}",
            "fn f() { unsafe {} }",
            "#[unsafe(no_mangle)]",
        ] {
            let made_up = MadeUp::sound();
            made_up.write(ELSEWHERE, &format!("//! Safe.\n{line}\n"));
            made_up.assert_one(check, "process/src/lib.rs:2", "`unsafe` stands");
        }
    }

    #[test]
    fn the_permission_elsewhere_is_found() {
        for line in [
            "#![allow(unsafe_code)]",
            "#[expect(unsafe_code, reason = \"x\")]",
        ] {
            let made_up = MadeUp::sound();
            made_up.write(ELSEWHERE, &format!("//! Safe.\n{line}\n"));
            made_up.assert_one(check, "process/src/lib.rs:2", "(unsafe_code)` stands");
        }
    }

    #[test]
    fn a_listed_module_that_is_gone_or_safe_is_found() {
        let made_up = MadeUp::sound();
        made_up.write(
            "kernel/src/slab.rs",
            "//! No longer unsafe.\n#![allow(unsafe_code)]\n",
        );
        made_up.assert_one(check, "ARCHITECTURE.md:12", "take it off the list");
        made_up.remove("kernel/src/slab.rs");
        made_up.assert_one(check, "ARCHITECTURE.md:12", "does not exist");
    }

    #[test]
    fn a_page_without_the_list_is_found() {
        let made_up = MadeUp::sound();
        made_up.write(PAGE, "# Architecture\n");
        made_up.assert_one(check, "ARCHITECTURE.md:1", "`## Unsafe` is missing");
    }
}
