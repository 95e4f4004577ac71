//! Check: code depends on a condition of three kinds only: test, model (loom), platform.
//!
//! A feature flag, or any other name, doubles what has to be tested. `weald_plain_alloc` swaps the
//! pools of memory for the allocator of the system, for AddressSanitizer.

use super::Finding;
use super::repository::{File, Repository};
use super::rust::Rust;

const CONDITIONS: [&str; 5] = ["test", "loom", "weald_plain_alloc", "unix", "panic"];
const OPERATORS: [&str; 5] = ["all", "any", "not", "true", "false"];

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    repository
        .our_rust()
        .flat_map(|(file, rust)| findings(file, &rust))
        .collect()
}

fn findings(file: &File, rust: &Rust) -> Vec<Finding> {
    let words = rust.words();
    let cfgs = words
        .iter()
        .filter(|(_, word)| ["cfg", "cfg_attr"].contains(word));
    let mut findings = Vec::new();
    for (at, word) in cfgs {
        for name in names(rust, at + word.len(), *word == "cfg_attr") {
            let sentence = format!(
                "The condition `{name}` is none of test, loom and platform; do without it."
            );
            findings.push(Finding::new(&file.path, rust.line_of(*at), sentence));
        }
    }
    findings
}

/// The names in the condition that opens at `open` (or behind the `!` there) that are not allowed.
fn names(rust: &Rust, open: usize, is_attribute: bool) -> Vec<String> {
    let open = if rust.code()[open..].starts_with('!') {
        open + 1
    } else {
        open
    };
    if !rust.code()[open..].starts_with('(') {
        return Vec::new(); // A name such as the variable `cfg`.
    }
    let Some(inside) = rust.inside(open) else {
        return Vec::new();
    };
    let condition = &rust.code()[inside];
    let condition = if is_attribute {
        first_argument(condition)
    } else {
        condition
    };
    let names = condition.split(|c: char| !c.is_alphanumeric() && c != '_');
    let allowed = |name: &str| {
        name.is_empty()
            || name.starts_with("target_")
            || CONDITIONS.contains(&name)
            || OPERATORS.contains(&name)
    };
    names
        .filter(|name| !allowed(name))
        .map(str::to_owned)
        .collect()
}

fn first_argument(arguments: &str) -> &str {
    let mut depth = 0;
    let end = arguments.find(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    });
    &arguments[..end.unwrap_or(arguments.len())]
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::*;

    #[test]
    fn the_three_kinds_pass() {
        for line in [
            "#[cfg(test)]",
            "#![cfg(loom)]",
            "#[cfg(all(unix, not(any(loom, weald_plain_alloc))))]",
            "#[cfg(target_os = \"linux\")]",
            "#[cfg_attr(all(loom, test), allow(dead_code))]",
            "const A: bool = cfg!(panic = \"unwind\");",
            "fn f(cfg: u8) { g(cfg) } // cfg(feature)",
        ] {
            MadeUp::new(&[("kernel/src/a.rs", line)]).assert_none(check);
        }
    }

    #[test]
    fn every_other_condition_is_found() {
        for (line, name) in [
            ("#[cfg(feature = \"fast\")]", "`feature`"),
            ("#[cfg(all(test, feature = \"fast\"))]", "`feature`"),
            ("#[cfg_attr(feature = \"fast\", inline)]", "`feature`"),
            (
                "const A: bool = cfg!(debug_assertions);",
                "`debug_assertions`",
            ),
            ("#[cfg(shuttle)]", "`shuttle`"),
        ] {
            let made_up = MadeUp::new(&[("kernel/src/a.rs", &format!("//! A leaf.\n{line}\n"))]);
            made_up.assert_one(check, "kernel/src/a.rs:2", name);
        }
    }
}
