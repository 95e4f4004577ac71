//! Check: inside a crate a name means one type.
//!
//! - Structs, enums, unions, traits and aliases count, at the level of modules.
//! - Associated types and test builds do not.
//! - A name that two types may have is found when a third has it.

use std::collections::BTreeMap;

use super::Finding;
use super::crates;
use super::modules::Modules;
use super::repository::Repository;

/// Names that several types have on purpose: the folder of the crate, how many types, the names and the reason.
const SHARED: [(&str, usize, &[&str], &str); 3] = [
    (
        "sync",
        2,
        &[
            "Sender",
            "Receiver",
            "Receive",
            "SendError",
            "TryReceiveError",
            "Full",
        ],
        "users write them after their module, `oneshot::Sender`, as in the standard library and Tokio",
    ),
    ("sync", 3, &["Closed"], "the same, for `semaphore::Closed`"),
    (
        "kernel",
        2,
        &["Scope"],
        "users write `Scope` and `fork::Scope`, each for the function `scope` beside it",
    ),
];

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let (members, _) = crates::members(repository);
    let folders = members.iter().map(|member| member.folder.as_str());
    folders
        .flat_map(|folder| findings(repository, folder))
        .collect()
}

fn findings(repository: &Repository, folder: &str) -> Vec<Finding> {
    let mut places = BTreeMap::<String, Vec<(String, usize)>>::new();
    for module in Modules::load(repository, folder).all {
        let root = || repository.crate_root(folder).map(|root| root.path.clone());
        let path = module.file.or_else(root).unwrap_or_default();
        // A module defines a name twice if it defines one for each platform or build.
        for (name, line) in module.types.into_iter().collect::<BTreeMap<_, _>>() {
            places.entry(name).or_default().push((path.clone(), line));
        }
    }
    let mut findings = Vec::new();
    for (name, mut places) in places {
        places.sort();
        let (first, others) = places.split_first().expect("a name has a place");
        let shared = SHARED
            .iter()
            .find(|(at, _, names, _)| *at == folder && names.contains(&name.as_str()));
        let permitted = shared.map_or(1, |(_, types, ..)| *types);
        for (path, line) in others.iter().skip(permitted - 1) {
            let sentence = format!(
                "`{name}` is also the name of a type in `{}`; give one of them a name of its own.",
                first.0
            );
            findings.push(Finding::new(path, *line, sentence));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::*;

    fn with(code: &str) -> MadeUp {
        let made_up = MadeUp::sound();
        made_up.write(
            "kernel/src/lib.rs",
            "//! The kernel.\n\nmod a;\nmod slab;\npub use a::A;\n",
        );
        made_up.write("kernel/src/a.rs", &format!("//! A leaf.\n\n{code}\n"));
        made_up.write("kernel/src/slab.rs", "//! A leaf.\n\n\npub struct A;\n");
        made_up
    }

    #[test]
    fn a_name_of_one_type_passes_and_so_do_tests_associated_types_and_other_crates() {
        for code in [
            "use crate::slab::A;",
            "impl B for C { type A = u8; }",
            "trait B { type A; }",
            "#[cfg(test)] struct A;",
            "#[cfg(test)] mod tests { struct A; }",
            "fn f() { struct A; }",
            "#[cfg(loom)] enum B {}\n#[cfg(not(loom))] enum B {}",
        ] {
            let made_up = with(code);
            made_up.write("process/src/lib.rs", "//! Processes.\npub struct A;\n");
            made_up.assert_none(check);
        }
    }

    #[test]
    fn a_name_that_two_types_may_have_is_found_at_a_third() {
        let made_up = with("pub struct Scope;\nmod b { pub struct Scope; }");
        made_up.assert_none(check);
        made_up.write("kernel/src/slab.rs", "//! A leaf.\nenum Scope {}\n");
        made_up.assert_one(check, "kernel/src/slab.rs:2", "`Scope` is also the name");
    }

    #[test]
    fn a_name_of_two_types_is_found() {
        for code in [
            "struct A;",
            "enum A {}",
            "union A { b: u8 }",
            "trait A {}",
            "type A = u8;",
            "mod b { struct A; }",
        ] {
            let made_up = with(code);
            made_up.assert_one(
                check,
                "kernel/src/slab.rs:4",
                "also the name of a type in `kernel/src/a.rs`",
            );
        }
    }
}
