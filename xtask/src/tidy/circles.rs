//! Check: the files of a crate import downward only, and no circle of imports grows.
//!
//! - The root of the crate lists the layers; `graph.rs` says how.
//! - The table in ARCHITECTURE.md has the size of each crate's largest circle. A larger one is a
//!   finding, and so is a smaller one, so that the table is lowered.

use std::cmp::Ordering;

use super::Finding;
use super::architecture::{self, PAGE, Row};
use super::graph::{Graph, Import};
use super::repository::Repository;

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    // An unreadable table is a finding of `crates.rs`.
    let rows = architecture::crates(repository).unwrap_or_default();
    rows.iter()
        .flat_map(|row| {
            let graph = Graph::load(repository, &row.folder);
            let upward: Vec<Finding> = graph.upward().map(finding).collect();
            upward.into_iter().chain(compare(row, &graph))
        })
        .collect()
}

fn finding(import: &Import) -> Finding {
    let Import {
        from,
        line,
        to,
        name,
    } = import;
    let sentence = format!(
        "`{name}` is in `{to}`, which the root of the crate lists in a higher layer; reverse the import, or move one of the two."
    );
    Finding::new(from, *line, sentence)
}

fn compare(row: &Row, graph: &Graph) -> Option<Finding> {
    let (folder, permitted, circle) = (&row.folder, row.circle, graph.largest_circle());
    let sentence = match circle.cmp(&permitted) {
        Ordering::Equal => return None,
        Ordering::Greater => format!(
            "The largest circle of imports in `{folder}` has {circle} files, and {permitted} are \
             permitted; `cargo xtask tidy --graph {folder}` lists them."
        ),
        Ordering::Less => format!(
            "The largest circle of imports in `{folder}` shrank from {permitted} files to {circle}; \
             lower it to {circle}, so that what was won stays."
        ),
    };
    Some(Finding::new(PAGE, row.line, sentence))
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::*;

    const ROOT: &str = "process/src/lib.rs";

    /// A crate of two layers, `low` and `high` with its child `leaf`, in which `low` has `code`.
    fn layered(code: &str) -> MadeUp {
        let made_up = MadeUp::sound();
        made_up.write(
            ROOT,
            "//! The root.\n\nmod low;\n\nmod high;\npub use high::Leaf;\n",
        );
        made_up.write("process/src/low.rs", &format!("//! A leaf.\n\n{code}\n"));
        made_up.write(
            "process/src/high.rs",
            "//! A leaf.\n\nmod leaf;\npub(crate) use leaf::Leaf;\n",
        );
        made_up.write(
            "process/src/high/leaf.rs",
            "//! A leaf.\n\npub struct Leaf;\n",
        );
        made_up
    }

    #[test]
    fn downward_imports_pass_and_so_do_those_of_tests() {
        layered("#[cfg(test)]\nmod tests {\n    use crate::high::Leaf;\n}").assert_none(check);
        let made_up = layered("pub(crate) struct Low;");
        made_up.write(
            "process/src/high/leaf.rs",
            "//! A leaf.\n\nuse crate::low::Low;\npub struct Leaf;\n",
        );
        made_up.assert_none(check);
    }

    #[test]
    fn an_upward_import_is_found_in_a_use_and_in_code() {
        for code in [
            "use crate::high::Leaf;",
            "use crate::Leaf;",
            "use super::{high::Leaf};",
            "fn f() -> crate::high::leaf::Leaf;",
            "const A: u8 = g!(crate::Leaf::new());",
        ] {
            layered(code).assert_one(check, "process/src/low.rs:3", "`process/src/high/leaf.rs`");
        }
    }

    #[test]
    fn an_upward_call_of_a_method_is_found_if_no_other_method_has_the_name() {
        let call = "pub struct Low;\nfn f(low: Low) { low.rise() }";
        let made_up = layered(call);
        let rises = "//! A leaf.\n\npub struct Leaf;\nimpl crate::low::Low { fn rise(&self) {} }\n";
        made_up.write("process/src/high/leaf.rs", rises);
        made_up.assert_one(
            check,
            "process/src/low.rs:4",
            "`.rise()` is in `process/src/high/leaf.rs`",
        );
        let other = format!("{rises}impl Leaf {{ fn rise(&self) {{}} }}\n");
        made_up.write("process/src/high/leaf.rs", &other);
        made_up.assert_none(check);
    }

    #[test]
    fn a_circle_that_grew_or_shrank_is_found() {
        let made_up = layered("");
        made_up.write(
            "process/src/high/leaf.rs",
            "//! A leaf.\n\nuse super::f;\npub struct Leaf;\n",
        );
        made_up.assert_one(check, "ARCHITECTURE.md:8", "2 files, and 1 are permitted");
        let page = made_up.load().file(PAGE).map(|page| page.text.clone());
        let page = page.expect("a sound repository has the page");
        made_up.write(PAGE, &page.replace("| `kernel` | 1 |", "| `kernel` | 3 |"));
        made_up.assert_one(check, "ARCHITECTURE.md:8", "lower it to 2");
    }
}
