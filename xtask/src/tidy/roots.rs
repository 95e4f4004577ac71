//! Check: the root of a library lists and re-exports, and has no code; and the kernel's folder shows its layers.
//!
//! The import graph leaves roots out, so code in one would be a way around the layers. Permitted are the statics by
//! which a layer of the kernel reaches later ones, which `kernel/src/lib.rs` explains. The graph takes a use of one for
//! an import of the file that defines its type, so each is described in the layer that uses it. A program's root is its
//! code.

use std::collections::BTreeSet;

use syn::Item;
use syn::spanned::Spanned;

use super::Finding;
use super::crates;
use super::modules::only_for_tests;
use super::repository::Repository;

/// The root that may have items, and these.
const PERMITTED: (&str, [&str; 3]) = (
    "kernel/src/lib.rs",
    ["FEATURES", "JOB_UPCALLS", "REPORT_UPCALLS"],
);

/// The kernel's folder.
const KERNEL: &str = "kernel/src/";
/// How many entries it may have: its layers, and not their files.
const MOST_ENTRIES: usize = 18;

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let (members, _) = crates::members(repository);
    let roots = members.iter().filter_map(|member| {
        let root = repository.crate_root(&member.folder)?;
        root.path.ends_with("/lib.rs").then_some(root)
    });
    let findings = roots.flat_map(|root| {
        let items = root.syntax().map_or(&[][..], |syntax| &syntax.items);
        let code = items.iter().filter(|item| !is_list(item, &root.path));
        code.map(|item| Finding::new(&root.path, item.span().start().line, SENTENCE))
    });
    findings.chain(too_many_entries(repository)).collect()
}

fn too_many_entries(repository: &Repository) -> Option<Finding> {
    let files = repository.our_rust();
    let inside = files.filter_map(|file| file.path.strip_prefix(KERNEL));
    let entries: BTreeSet<_> = inside.filter_map(|path| path.split('/').next()).collect();
    let sentence = format!(
        "The kernel's folder has {} entries, the limit is {MOST_ENTRIES}: a file belongs into the folder of its layer.",
        entries.len()
    );
    (entries.len() > MOST_ENTRIES).then(|| Finding::new("kernel/src/lib.rs", 1, sentence))
}

const SENTENCE: &str = "The root of a library has only `mod` and `use`: what is defined here is in no layer; move it into \
                        a file of its own.";

fn is_list(item: &Item, path: &str) -> bool {
    match item {
        Item::Mod(module) => {
            let inner = module.content.iter().flat_map(|(_, items)| items);
            only_for_tests(&module.attrs) || inner.into_iter().all(|item| is_list(item, path))
        }
        Item::Use(_) | Item::ExternCrate(_) | Item::Macro(_) => true,
        // A type that only carries the examples of a page, which are tests.
        Item::Struct(item) => item.attrs.iter().any(|it| it.path().is_ident("cfg")),
        // The compiler wants the functions of a crate of macros in its root.
        Item::Fn(item) => item
            .attrs
            .iter()
            .any(|it| it.path().is_ident("proc_macro_attribute")),
        Item::Static(item) => {
            let (root, names) = PERMITTED;
            path == root && names.contains(&item.ident.to_string().as_str())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::*;

    fn with_root(code: &str) -> MadeUp {
        let made_up = MadeUp::sound();
        made_up.write("process/src/lib.rs", &format!("//! The root.\n\n{code}\n"));
        made_up
    }

    #[test]
    fn a_root_that_lists_and_re_exports_passes() {
        let sound =
            "mod low { mod leaf; }\npub use low::Leaf;\n#[cfg(test)]\nmod tests { fn f() {} }";
        with_root(sound).assert_none(check);
    }

    #[test]
    fn a_function_of_the_root_passes_only_as_a_macro() {
        with_root("#[proc_macro_attribute]\npub fn f() {}").assert_none(check);
        with_root("#[inline]\npub fn f() {}").assert_one(check, "process/src/lib.rs:3", "no layer");
    }

    #[test]
    fn a_file_too_many_in_the_kernels_folder_is_found() {
        // It has a root and a file.
        let made_up = MadeUp::sound();
        for number in 3..=MOST_ENTRIES {
            made_up.write(&format!("kernel/src/layer{number}/a.rs"), "//! A leaf.\n");
            made_up.write(&format!("kernel/src/layer{number}/b.rs"), "//! A leaf.\n");
        }
        made_up.assert_none(check);
        made_up.write("kernel/src/stray.rs", "//! A leaf.\n");
        made_up.assert_one(check, "kernel/src/lib.rs:1", "19 entries");
    }

    #[test]
    fn code_in_a_root_is_found() {
        for code in [
            "pub(crate) fn up() {}",
            "pub struct A;",
            "static FEATURES: u8 = 0;",
            "mod low { fn f() {} }",
        ] {
            with_root(code).assert_one(check, "process/src/lib.rs:3", "only `mod` and `use`");
        }
    }
}
