//! The import graph of each crate: which file names something of another file, its layers and circles.
//!
//! - A node is a file. The root of the crate is not one, because it only lists and re-exports (`roots.rs`). If it has a
//!   static, a use of that is an import of the file that defines the static's type.
//! - Every path counts, in a `use` or elsewhere, and resolves to the file that defines what it names.
//! - A call of a method that a file adds to a type of another file is an arrow, too, if the crate has no other method
//!   of the name: a call does not tell the type. Such calls must not lead upward; circles are counted with and without
//!   them.
//! - The layers are the groups of `mod` items in the root, separated by empty lines, lowest first. An import from a
//!   lower layer to a higher one is an upward import.
//! - A circle is a strongly connected component: each of its files imports every other, directly or not.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use proc_macro2::Span;
use quote::ToTokens;
use syn::Item;

use super::crates;
use super::modules::Modules;
use super::repository::{File, Repository};

/// Methods of ours that are called as some of the standard library: a call of one tells nothing.
const OF_STANDARD_TYPES: [&str; 2] = ["find", "kind"];

/// One place where a file names something of another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Import {
    pub(super) from: String,
    pub(super) line: usize,
    pub(super) to: String,
    pub(super) name: String,
}

/// The import graph of one crate.
pub(super) struct Graph {
    pub(super) folder: String,
    pub(super) files: BTreeSet<String>,
    pub(super) imports: BTreeSet<Import>,
    /// The imports, and the calls of methods that a file adds to a type of another one.
    arrows: BTreeSet<Import>,
    /// The layer of each module of the root, counted from the lowest.
    layers: BTreeMap<String, usize>,
}

/// Describes the graph of every crate in one line each, or of `only` with its circle in full.
pub(super) fn describe(repository: &Repository, only: Option<&str>) -> Result<String, String> {
    let (members, _) = crates::members(repository);
    let mut text = String::new();
    for member in members {
        if only.is_none_or(|only| only == member.folder) {
            let graph = Graph::load(repository, &member.folder);
            text += &graph.line();
            if only.is_some() {
                text += &graph.details();
            }
        }
    }
    if text.is_empty() {
        let name = only.unwrap_or_default();
        return Err(format!(
            "`{name}` is not a crate of the workspace; name the folder of one."
        ));
    }
    Ok(text)
}

impl Graph {
    /// Reads the crate in `folder`.
    pub(super) fn load(repository: &Repository, folder: &str) -> Self {
        let modules = Modules::load(repository, folder);
        let files = modules.all.iter().filter_map(|module| module.file.clone());
        let mut imports = BTreeSet::new();
        for (at, module) in modules.all.iter().enumerate() {
            for named in &module.named {
                let by_type = modules.type_of_root_static(at, &named.path);
                let target = || Some(modules.resolve(at, &named.path)?.module);
                let to = by_type.or_else(target);
                let to = to.and_then(|to| modules.all[to].file.as_ref());
                if let (Some(from), Some(to)) = (&module.file, to)
                    && from != to
                {
                    imports.insert(Import {
                        from: from.clone(),
                        line: named.line,
                        to: to.clone(),
                        name: named.path.join("::"),
                    });
                }
            }
        }
        let files = files.collect();
        let mut arrows = imports.clone();
        arrows.extend(calls_of_added_methods(&modules));
        Self {
            folder: folder.to_owned(),
            files,
            imports,
            arrows,
            layers: repository
                .crate_root(folder)
                .map(layers)
                .unwrap_or_default(),
        }
    }

    /// The files of the largest circle of these arrows, sorted. A file outside any circle counts as a circle of one.
    fn circle<'a>(&'a self, arrows: &'a BTreeSet<Import>) -> BTreeSet<&'a str> {
        let reached: BTreeMap<&'a str, BTreeSet<&'a str>> = self
            .files
            .iter()
            .map(|file| (file.as_str(), reached_from(file, arrows)))
            .collect();
        let circle = |file: &&'a str| -> BTreeSet<&'a str> {
            let back = reached[file]
                .iter()
                .filter(|other| reached[*other].contains(file));
            back.copied().chain([*file]).collect()
        };
        // The first of equally large circles.
        let circles = reached.keys().map(circle).rev();
        circles.max_by_key(BTreeSet::len).unwrap_or_default()
    }

    /// The arrows from a lower layer to a higher one.
    pub(super) fn upward(&self) -> impl Iterator<Item = &Import> {
        let is_upward = |import: &&Import| self.layer(&import.from) < self.layer(&import.to);
        self.arrows.iter().filter(is_upward)
    }

    /// The layer of a file, which is the layer of its module in the root.
    fn layer(&self, file: &str) -> usize {
        let inside = file
            .strip_prefix(&format!("{}/src/", self.folder))
            .unwrap_or(file);
        let module = inside.split(['/', '.']).next().unwrap_or(inside);
        self.layers.get(module).copied().unwrap_or_default()
    }

    /// The number of files in the largest circle of imports, 1 if there is none.
    pub(super) fn largest_circle(&self) -> usize {
        self.circle(&self.imports).len().max(1)
    }

    fn line(&self) -> String {
        let (circle, files) = (self.largest_circle(), self.files.len());
        let upward = self.upward().count();
        let with_calls = self.circle(&self.arrows).len().max(1);
        format!(
            "{}: largest circle {circle} of {files}, upward {upward}; with calls of added methods {with_calls}\n",
            self.folder
        )
    }

    fn details(&self) -> String {
        let circle = self.circle(&self.imports);
        let is_inside = |name: &String| circle.contains(name.as_str());
        let inside = self
            .imports
            .iter()
            .filter(|i| is_inside(&i.from) && is_inside(&i.to));
        let mut text = String::new();
        if circle.len() > 1 {
            text += "\nthe files of the circle:\n";
            for file in &circle {
                let _ = writeln!(text, "{file}");
            }
        }
        for (title, imports) in [
            ("the imports inside the circle", inside.collect::<Vec<_>>()),
            ("the upward imports", self.upward().collect()),
        ] {
            if !imports.is_empty() {
                let _ = writeln!(text, "\n{title}:");
            }
            for Import {
                from,
                line,
                to,
                name,
            } in imports
            {
                let _ = writeln!(text, "{from}:{line} → {to} ({name})");
            }
        }
        text
    }
}

fn reached_from<'a>(file: &'a str, arrows: &'a BTreeSet<Import>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![file];
    while let Some(file) = open.pop() {
        let next = arrows.iter().filter(|arrow| arrow.from == file);
        open.extend(
            next.map(|arrow| arrow.to.as_str())
                .filter(|to| reached.insert(*to)),
        );
    }
    reached
}

/// The calls of methods that a file adds to a type of another file.
fn calls_of_added_methods(modules: &Modules) -> Vec<Import> {
    let in_files = || {
        let all = modules.all.iter();
        all.filter_map(|module| Some((module.file.as_ref()?, module)))
    };
    let mut types = BTreeSet::new();
    let mut definitions = BTreeMap::<&str, Vec<(&String, Option<&String>)>>::new();
    for (file, module) in in_files() {
        types.extend(module.types.iter().map(|(name, _)| (file, name)));
        for method in &module.methods {
            let places = definitions.entry(&method.name).or_default();
            places.push((file, method.of.as_ref()));
        }
    }
    let added = |name: &str| match definitions.get(name).map(Vec::as_slice) {
        Some([(file, Some(of))])
            if !types.contains(&(*file, *of)) && !OF_STANDARD_TYPES.contains(&name) =>
        {
            Some(*file)
        }
        _ => None,
    };
    let calls = in_files().flat_map(|(from, module)| {
        module.calls.iter().filter_map(move |(name, line)| {
            let to = added(name).filter(|to| *to != from)?;
            Some(Import {
                from: from.clone(),
                line: *line,
                to: to.clone(),
                name: format!(".{name}()"),
            })
        })
    });
    calls.collect()
}

/// The layer of each `mod` item of the root, from the empty lines between the items.
fn layers(root: &File) -> BTreeMap<String, usize> {
    let Ok(syntax) = root.syntax() else {
        return BTreeMap::new();
    };
    let lines: Vec<&str> = root.text.lines().collect();
    let (mut layers, mut layer, mut end) = (BTreeMap::new(), 0, None);
    for item in &syntax.items {
        let Item::Mod(module) = item else { continue };
        let (first, last) = extent(item);
        let between = end.map(|end: usize| &lines[end..first - 1]);
        let is_empty = |line: &&str| line.trim().is_empty();
        layer += usize::from(between.is_some_and(|lines| lines.iter().any(is_empty)));
        layers.insert(module.ident.to_string(), layer);
        end = Some(last);
    }
    layers
}

/// The first and the last line of an item, its attributes included.
fn extent(item: &Item) -> (usize, usize) {
    let tokens: Vec<_> = item.to_token_stream().into_iter().collect();
    let first = tokens
        .first()
        .map_or_else(Span::call_site, proc_macro2::TokenTree::span);
    let last = tokens
        .last()
        .map_or_else(Span::call_site, proc_macro2::TokenTree::span);
    (first.start().line, last.end().line)
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::*;

    #[test]
    fn modules_below_an_inline_parent_are_files_of_its_layer() {
        let root = "//! The root.\n\nmod low;\nmod job {\n    pub(crate) mod state;\n\n    \
                    pub(crate) mod deep {\n        pub(crate) mod leaf;\n    }\n    \
                    pub(crate) use deep::leaf::Leaf;\n}\n\n#[cfg(test)]\nmod tests;\n// A word.\n\nmod high;\n";
        let made_up = MadeUp::sound();
        made_up.write("process/src/lib.rs", root);
        for (path, code) in [
            ("low", "use crate::job::Leaf;"),
            ("job/state", "fn f() { super::deep::leaf::g() }"),
            (
                "job/deep/leaf",
                "use crate::{low, job::state, high::High};\npub struct Leaf;",
            ),
            (
                "high",
                "use crate::job::{self, Leaf as L};\npub struct High;",
            ),
        ] {
            made_up.write(
                &format!("process/src/{path}.rs"),
                &format!("//! A leaf.\n{code}\n"),
            );
        }
        assert_eq!(
            describe(&made_up.load(), Some("process")).as_deref(),
            Ok(
                "process: largest circle 4 of 4, upward 1; with calls of added methods 4\n\n\
                the files of the circle:\n\
                process/src/high.rs\nprocess/src/job/deep/leaf.rs\nprocess/src/job/state.rs\nprocess/src/low.rs\n\n\
                the imports inside the circle:\n\
                process/src/high.rs:2 → process/src/job/deep/leaf.rs (crate::job::Leaf)\n\
                process/src/job/deep/leaf.rs:2 → process/src/high.rs (crate::high::High)\n\
                process/src/job/deep/leaf.rs:2 → process/src/job/state.rs (crate::job::state)\n\
                process/src/job/deep/leaf.rs:2 → process/src/low.rs (crate::low)\n\
                process/src/job/state.rs:2 → process/src/job/deep/leaf.rs (super::deep::leaf::g)\n\
                process/src/low.rs:2 → process/src/job/deep/leaf.rs (crate::job::Leaf)\n\n\
                the upward imports:\n\
                process/src/job/deep/leaf.rs:2 → process/src/high.rs (crate::high::High)\n"
            )
        );
    }

    #[test]
    fn a_module_that_was_imported_is_looked_into_and_glob_re_exports_are_followed() {
        let made_up = MadeUp::sound();
        made_up.write("process/src/lib.rs", "//! The root.\nmod a;\nmod b;\n");
        made_up.write(
            "process/src/a.rs",
            "//! A leaf.\nuse crate::b;\nfn f() { b::inner::g(); b::h() }\n",
        );
        made_up.write(
            "process/src/b.rs",
            "//! A leaf.\npub mod inner;\npub use inner::*;\n",
        );
        made_up.write(
            "process/src/b/inner.rs",
            "//! A leaf.\npub fn g() {}\npub fn h() {}\n",
        );
        let imports = Graph::load(&made_up.load(), "process").imports;
        let shown: Vec<_> = imports
            .iter()
            .map(|i| format!("{} {}", i.to, i.name))
            .collect();
        assert_eq!(
            shown,
            [
                "process/src/b.rs crate::b",
                "process/src/b/inner.rs b::h",
                "process/src/b/inner.rs b::inner::g",
                "process/src/b/inner.rs inner::*",
            ]
        );
    }

    #[test]
    fn a_use_of_a_static_of_the_root_is_an_import_of_the_file_of_its_type() {
        let made_up = MadeUp::sound();
        made_up.write(
            "process/src/lib.rs",
            "//! The root.\nmod low;\n\nmod high;\n\nstatic TABLE: high::Table<low::Leaf> = high::TABLE;\n",
        );
        made_up.write(
            "process/src/low.rs",
            "//! A leaf.\nuse crate::TABLE;\npub struct Leaf;\nfn f() { TABLE.call() }\n",
        );
        made_up.write(
            "process/src/high.rs",
            "//! A leaf.\npub struct Table<L>(L);\n",
        );
        let graph = Graph::load(&made_up.load(), "process");
        let upward: Vec<_> = graph.upward().collect();
        let [Import { from, to, name, .. }] = &upward[..] else {
            panic!("one import leads upward, but not {upward:?}");
        };
        let shown = [from, to, name].map(String::as_str);
        assert_eq!(
            shown,
            ["process/src/low.rs", "process/src/high.rs", "crate::TABLE"]
        );
    }

    #[test]
    fn a_crate_that_does_not_exist_is_a_sentence() {
        let described = describe(&MadeUp::sound().load(), Some("gone"));
        assert!(described.is_err_and(|sentence| sentence.contains("is not a crate")));
    }
}
