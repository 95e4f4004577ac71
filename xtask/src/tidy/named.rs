//! Check: what a page names in backticks exists. The check of links is `links.rs`.
//!
//! - A path exists. It is looked at if its first part is a file or folder of the root or of the
//!   page's folder, or one of `src`, `tests` and their like; a single name, if it ends like a source
//!   file or a page. Code blocks are left out, and so is
//!   CHANGELOG.md, which names files that are gone.
//! - A section may say: "Paths begin with `kernel/src`, or with `kernel/src/job`." There every source file must exist,
//!   in one of these folders or from the root.
//! - A file defines the names in the parentheses after it: `kernel/src/a.rs` (`f`, later `Type::method`).

use std::collections::BTreeSet;

use syn::visit::{self, Visit};

use super::Finding;
use super::repository::{File, Repository};

const FOLDERS: [&str; 5] = ["src", "tests", "benches", "examples", "docs"];
const ENDINGS: [&str; 3] = [".rs", ".md", ".toml"];
/// A folder that a command creates, and a name that pages mention but no file may have.
const NEVER_LOOKED_FOR: [&str; 2] = ["target", "mod.rs"];

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let pages = repository
        .markdown()
        .filter(|page| page.path != "CHANGELOG.md");
    pages.flat_map(|page| findings(repository, page)).collect()
}

fn findings(repository: &Repository, page: &File) -> Vec<Finding> {
    let text = without_blocks(&page.text);
    let mut findings = Vec::new();
    let mut end = 0;
    // The odd parts are in backticks.
    for (at, part) in text.split('`').enumerate() {
        let line = text[..end].matches('\n').count() + 1;
        end += part.len() + 1;
        let name = part.split([':', '#']).next().unwrap_or(part);
        if at % 2 == 0 || name.is_empty() || !name.chars().all(is_of_path) {
            continue;
        }
        let bases = bases(section(&text, end));
        if !exists(repository, (page, &bases), name) {
            let sentence = format!("`{name}` does not exist; name what does.");
            findings.push(Finding::new(&page.path, line, sentence));
        }
        let in_bases = bases.iter().map(|base| format!("{base}/{name}"));
        let file = in_bases
            .chain([name.to_owned()])
            .find_map(|path| repository.file(&path))
            .filter(|file| file.is_rust());
        let inside = text
            .get(end..)
            .and_then(|rest| rest.trim_start().strip_prefix('('));
        if let (Some(file), Some(inside)) = (file, inside) {
            let defined = Defined::in_file(file);
            let missing = names(inside).filter(|name| !defined.names.contains(*name));
            findings.extend(missing.map(|missing| {
                let sentence = format!(
                    "`{missing}` is not defined in `{name}`; name what is, or the file it is in."
                );
                Finding::new(&page.path, line, sentence)
            }));
        }
    }
    findings
}

/// The section of `text` that has the byte `at`, with its heading.
fn section(text: &str, at: usize) -> &str {
    const HEADING: &str = "\n## ";
    let at = at.min(text.len());
    let begin = text[..at].rfind(HEADING).unwrap_or_default();
    let rest = &text[begin..];
    let end = rest.get(1..).and_then(|rest| rest.find(HEADING));
    &rest[..end.map_or(rest.len(), |end| end + 1)]
}

/// The folders with which the paths of `section` begin.
fn bases(section: &str) -> Vec<&str> {
    let mut bases = Vec::new();
    if let Some((_, rest)) = section.split_once("Paths begin with `") {
        let mut parts = rest.split('`');
        bases.extend(parts.next());
        while parts
            .next()
            .is_some_and(|between| between.split_whitespace().eq([",", "or", "with"]))
        {
            bases.extend(parts.next());
        }
    }
    bases
}

/// The text with empty lines in place of its code blocks.
fn without_blocks(text: &str) -> String {
    let mut is_inside = false;
    let keep = |line| {
        let is_fence = str::trim_start(line).starts_with("```");
        is_inside ^= is_fence;
        if is_inside || is_fence { "" } else { line }
    };
    text.lines().map(keep).collect::<Vec<_>>().join("\n")
}

fn is_of_path(c: char) -> bool {
    c.is_alphanumeric() || "_-./".contains(c)
}

/// Whether `name` is that of a file or folder, or does not look like one of ours. Paths of the section may begin with
/// `begins`.
fn exists(repository: &Repository, (page, begins): (&File, &[&str]), name: &str) -> bool {
    let name = name.trim_start_matches("./").trim_end_matches('/');
    let begun = || begins.iter().map(|base| format!("{base}/{name}"));
    if begun().any(|path| repository.exists(&path)) {
        return true;
    }
    if !begins.is_empty() && name.ends_with(".rs") {
        return repository.exists(name);
    }
    let Some((first, _)) = name.split_once('/') else {
        let is_name = |file: &File| file.path.rsplit('/').next() == Some(name);
        let is_file = ENDINGS
            .iter()
            .any(|ending| name.len() > ending.len() && name.ends_with(ending));
        return !is_file
            || NEVER_LOOKED_FOR.contains(&name)
            || repository.files.iter().any(is_name);
    };
    let mut bases = page
        .folder()
        .match_indices('/')
        .map(|(at, _)| &page.folder()[..at])
        .collect::<Vec<_>>();
    bases.extend(["", page.folder()]);
    let is_there = |path: &str| {
        bases
            .iter()
            .any(|base| repository.exists(format!("{base}/{path}").trim_start_matches('/')))
    };
    let is_ours = !first.is_empty() && (FOLDERS.contains(&first) || is_there(first));
    !is_ours || NEVER_LOOKED_FOR.contains(&first) || is_there(name)
}

/// The names in backticks in `text`, up to the closing parenthesis.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 1;
    let mut is_quoted = false;
    let end = text.find(|c| {
        is_quoted ^= c == '`';
        match c {
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    let quoted = text[..end.unwrap_or_default()]
        .split('`')
        .skip(1)
        .step_by(2);
    let is_name = |c: char| c.is_alphanumeric() || "_:".contains(c);
    quoted.filter(move |name| name.chars().all(is_name))
}

/// Every name that a file defines; methods also as `Type::method`.
#[derive(Default)]
struct Defined {
    names: BTreeSet<String>,
    owner: Option<String>,
}

impl Defined {
    fn in_file(file: &File) -> Self {
        let mut defined = Self::default();
        if let Ok(syntax) = file.syntax() {
            defined.visit_file(syntax);
        }
        defined
    }

    fn inside(&mut self, owner: Option<String>, visit: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.owner, owner);
        visit(self);
        self.owner = outer;
    }
}

impl<'a> Visit<'a> for Defined {
    fn visit_item(&mut self, item: &'a syn::Item) {
        use syn::Item;
        let name = match item {
            Item::Const(item) => Some(&item.ident),
            Item::Static(item) => Some(&item.ident),
            Item::Macro(item) => item.ident.as_ref(),
            Item::Mod(item) => Some(&item.ident),
            item => super::modules::type_name(item).map(|(name, _)| name),
        };
        self.names.extend(name.map(ToString::to_string));
        visit::visit_item(self, item);
    }

    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        let owner = match &*item.self_ty {
            syn::Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
            _ => None,
        };
        self.inside(owner, |defined| visit::visit_item_impl(defined, item));
    }

    fn visit_item_trait(&mut self, item: &'a syn::ItemTrait) {
        let owner = Some(item.ident.to_string());
        self.inside(owner, |defined| visit::visit_item_trait(defined, item));
    }

    fn visit_signature(&mut self, signature: &'a syn::Signature) {
        let name = signature.ident.to_string();
        self.names
            .extend(self.owner.as_ref().map(|owner| format!("{owner}::{name}")));
        self.names.insert(name);
    }
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::*;

    const CODE: &str = "//! A leaf.\nfn f() { g() }\nstruct A;\nimpl<T> b::B<T> { fn m() {} }\ntrait C { fn n(); }\n";

    fn page(text: &str) -> MadeUp {
        MadeUp::new(&[
            ("kernel/src/a.rs", CODE),
            ("kernel/page.md", &format!("# Page\n\n{text}\n")),
        ])
    }

    #[test]
    fn names_that_the_file_defines_pass() {
        for text in [
            "`kernel/src/a.rs` (`f`, later `B::m` (or `C::n`), through `kernel/src/a.rs`) and `g`",
            "`kernel/src/a.rs`\n(`A`: `m`)",
            "`a.rs`, (`g`)",
            "`kernel/src/a.rs` (no name, `-> g`)",
            "`kernel/src/`, `kernel/src/a.rs:12`, `src/a.rs`, `a.rs`",
            "`target/report.html`, `mod.rs`, `.rs`, `.md`, `a::b`, `send/receive`, `tokio/src/x.rs`",
            "`/proc/stat`, `cargo test x/y`, `1.5`",
            "```\n`kernel/gone.rs`\n```",
        ] {
            page(text).assert_none(check);
        }
    }

    const BEGIN: &str = "## One\n\nPaths begin with `kernel`, or\nwith `kernel/src`.";

    #[test]
    fn a_section_may_say_how_its_paths_begin() {
        page(&format!(
            "{BEGIN} `a.rs` (`f`), `src/a.rs` (`f`), `kernel/src/a.rs` (`B::m`)\n\n## Two\n\n`x/y.rs`"
        ))
        .assert_none(check);
        for (text, finding) in [
            ("`a.rs` (`g`)", "is not defined in `a.rs`"),
            ("`gone/a.rs`", "`gone/a.rs` does not exist"),
            ("`page.rs`", "`page.rs` does not exist"),
        ] {
            page(&format!("{BEGIN}\n{text}")).assert_one(check, "kernel/page.md:7", finding);
        }
    }

    #[test]
    fn a_name_that_the_file_does_not_define_is_found() {
        for text in [
            "`kernel/src/a.rs` (`g`)",
            "`kernel/src/a.rs` (`f`, later\n`g`)",
            "`kernel/src/a.rs`\n(`A::m`)",
            "`kernel/src/` → `kernel/src/a.rs` (`B::n`)",
        ] {
            page(text).assert_one(
                check,
                "kernel/page.md:3",
                "is not defined in `kernel/src/a.rs`",
            );
        }
    }

    #[test]
    fn a_path_that_does_not_exist_is_found_except_in_the_changelog() {
        for text in [
            "kernel/src/gone.rs",
            "kernel/gone/",
            "kernel/src/gone.rs:12",
            "src/gone.rs",
            "benches/gone.rs",
            "gone.rs",
            "GONE.md",
        ] {
            let made_up = page(&format!("See\n`{text}`."));
            made_up.assert_one(check, "kernel/page.md:4", "does not exist");
        }
        MadeUp::new(&[("CHANGELOG.md", "`kernel/src/gone.rs` is gone.\n")]).assert_none(check);
    }
}
