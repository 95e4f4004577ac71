//! Check: every path of the repository that a page names in backticks exists. Links are lychee's.
//!
//! - A name is looked at if its first part is a file or folder of the root or of the page's folder,
//!   or one of `src`, `tests` and their like. A single name is looked at if it ends like a source
//!   file or a page.
//! - Blocks of code are left out, and so is CHANGELOG.md, which names files that are gone. `*` in a
//!   name matches any part of it.

use super::Finding;
use super::repository::{File, Repository};

const FOLDERS: [&str; 5] = ["src", "tests", "benches", "examples", "docs"];
const ENDINGS: [&str; 3] = [".rs", ".md", ".toml"];
/// Made by a command, so that they need not exist; and a name that no file of ours may have.
const NEVER_LOOKED_FOR: [&str; 2] = ["target", "mod.rs"];

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let pages = repository
        .markdown()
        .filter(|page| page.path != "CHANGELOG.md");
    pages.flat_map(|page| findings(repository, page)).collect()
}

fn findings(repository: &Repository, page: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut in_block = false;
    for (at, line) in page.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        }
        if in_block {
            continue;
        }
        let names = names(line).filter(|name| !name_resolves(repository, page, name));
        findings.extend(names.map(|path| {
            Finding::new(
                &page.path,
                at + 1,
                format!("`{path}` does not exist; name what does."),
            )
        }));
    }
    findings
}

/// `path` as seen from `folder`, or nothing if it leads out of the repository.
fn from(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop()?,
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// What stands in backticks in a line and could be a path, without a line number at its end.
fn names(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('`').skip(1).step_by(2);
    let paths = quoted.map(|name| name.split([':', '#']).next().unwrap_or(name));
    let is_path = |c: char| c.is_alphanumeric() || "_-./*".contains(c);
    paths.filter(move |path| !path.is_empty() && path.chars().all(is_path))
}

fn name_resolves(repository: &Repository, page: &File, name: &str) -> bool {
    let name = name.trim_start_matches("./").trim_end_matches('/');
    let (first, folder) = (name.split('/').next().unwrap_or(name), page.folder());
    if NEVER_LOOKED_FOR.contains(&first) {
        return true;
    }
    if !name.contains('/') {
        let is_file = ENDINGS
            .iter()
            .any(|ending| name.len() > ending.len() && name.ends_with(ending));
        return !is_file
            || repository
                .files
                .iter()
                .any(|f| matches(last(&f.path), name));
    }
    let bases: Vec<&str> = ancestors(folder).collect();
    let begins_here = |base: &&str| from(base, first).is_some_and(|path| repository.exists(&path));
    if first.is_empty() || !(FOLDERS.contains(&first) || bases.iter().any(begins_here)) {
        return true; // An address, a division, or a path of another repository.
    }
    bases
        .iter()
        .filter_map(|base| from(base, name))
        .any(|path| stands(repository, &path))
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// `folder`, the folder around it, and so on to the root.
fn ancestors(folder: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(folder), |folder| match folder.rsplit_once('/') {
        Some((parent, _)) => Some(parent),
        None => Some("").filter(|_| !folder.is_empty()),
    })
}

fn stands(repository: &Repository, path: &str) -> bool {
    repository.exists(path)
        || path.contains('*')
            && repository
                .files
                .iter()
                .any(|file| matches(&file.path, path))
}

/// Whether `path` is `pattern` with something, no slash in it, for each `*`.
fn matches(path: &str, pattern: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else {
        return path == pattern;
    };
    let Some(rest) = path.strip_prefix(before) else {
        return false;
    };
    let part = rest.find('/').unwrap_or(rest.len());
    (0..=part).any(|end| rest.is_char_boundary(end) && matches(&rest[end..], after))
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::*;

    fn repository(page: &str, text: &str) -> MadeUp {
        let made_up = MadeUp::new(&[("kernel/src/a.rs", ""), ("docs/b.md", "")]);
        made_up.write(page, text);
        made_up
    }

    #[test]
    fn paths_that_exist_or_are_not_ours_pass() {
        for text in [
            "`kernel/src/a.rs`, `kernel/src/`, `kernel/src/a.rs:12`, `src/a.rs`, `a.rs`",
            "`kernel/*/a*.rs`, `a.*`, `target/report.html`, `mod.rs`, `.rs`, `.md`",
            "`tokio/src/x.rs`, `a::b`, `send/receive`, `/proc/stat`, `cargo test x/y`, `1.5`",
            "```\n`kernel/gone.rs`\n```",
        ] {
            repository("kernel/page.md", text).assert_none(check);
        }
    }

    #[test]
    fn a_name_that_does_not_exist_is_found() {
        for text in [
            "`kernel/src/gone.rs`",
            "`kernel/gone/`",
            "`kernel/src/gone.rs:12`",
            "`src/gone.rs`",
            "`benches/gone.rs`",
            "`kernel/*/gone*.rs`",
            "`gone.rs`",
            "`GONE.md`",
        ] {
            let made_up = repository("page.md", &format!("# Page\n\nSee {text}.\n"));
            made_up.assert_one(check, "page.md:3", "does not exist");
        }
    }

    #[test]
    fn the_changelog_may_name_what_is_gone() {
        repository("CHANGELOG.md", "`kernel/src/gone.rs` is gone.\n").assert_none(check);
    }
}
