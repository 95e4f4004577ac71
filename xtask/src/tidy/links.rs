//! Check: a link in a page of Markdown leads to a file of the repository, and to a heading of that file.
//!
//! - Links to other sites are not followed: the check needs no network.
//! - A page that includes another one, as pages of the book do, is judged with what it includes.
//! - A page of the book is in its table of contents and links to pages of the book only: mdBook makes nothing else.
//! - rustdoc and `cargo xtask doc` judge the pages that only rustdoc shows, each named `page.md`.

use std::collections::HashSet;

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};

use super::Finding;
use super::repository::{File, Repository};

/// The sources of the book.
const BOOK: &str = "book/src/";
const CONTENTS: &str = "book/src/SUMMARY.md";

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let pages = repository.markdown();
    let pages = pages.filter(|page| !page.path.ends_with("/page.md"));
    pages.flat_map(|page| findings(repository, page)).collect()
}

fn findings(repository: &Repository, page: &File) -> Vec<Finding> {
    let (text, lines) = with_included(repository, page);
    let mut found: Vec<Finding> = links(&text)
        .into_iter()
        .filter_map(|(line, link)| {
            let why = fault(repository, page, &text, &link)?;
            Some(Finding::new(
                &page.path,
                lines[line],
                format!("links to `{link}`, {why}"),
            ))
        })
        .collect();
    if page.path.starts_with(BOOK) && page.path != CONTENTS && !is_listed(repository, page) {
        let sentence = format!("is a page of the book that `{CONTENTS}` does not name.");
        found.push(Finding::new(&page.path, 1, sentence));
    }
    found
}

/// What is wrong with a link, as the end of a sentence.
fn fault(repository: &Repository, page: &File, text: &str, link: &str) -> Option<&'static str> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, heading) = link.split_once('#').unwrap_or((link, ""));
    if path.is_empty() {
        let is_there = headings(text).contains(heading);
        return (!is_there).then_some("which is no heading of this page.");
    }
    let Some(target) = joined(page.folder(), path) else {
        return Some("which is outside of the repository.");
    };
    if !repository.exists(&target) {
        return Some("which does not exist.");
    }
    if page.path.starts_with(BOOK) && !target.starts_with(BOOK) {
        return Some("which the book does not have; name it in words, or include it as a page.");
    }
    let target = repository.file(&target).filter(|file| file.is_markdown());
    let lacks = |target: &File| !headings(&with_included(repository, target).0).contains(heading);
    (!heading.is_empty() && target.is_some_and(lacks)).then_some("a heading that is not there.")
}

fn is_listed(repository: &Repository, page: &File) -> bool {
    let name = page.path.strip_prefix(BOOK);
    let contents = repository.file(CONTENTS);
    contents.is_some_and(|contents| {
        links(&contents.text)
            .iter()
            .any(|(_, link)| Some(link.as_str()) == name)
    })
}

/// The text of a page with what it includes in place of `{{#include PATH}}`, and for each line of it the one of the
/// page.
fn with_included(repository: &Repository, page: &File) -> (String, Vec<usize>) {
    let (mut text, mut lines) = (String::new(), Vec::new());
    for (at, line) in page.text.lines().enumerate() {
        let path = line
            .strip_prefix("{{#include ")
            .and_then(|rest| rest.strip_suffix("}}"));
        let path = path.and_then(|path| joined(page.folder(), path));
        let included = path.and_then(|path| repository.file(&path));
        for line in included.map_or(line, |file| &file.text).split('\n') {
            text += line;
            text.push('\n');
            lines.push(at + 1);
        }
    }
    (text, lines)
}

/// The links of a page, each with its line, the first of which is 0.
fn links(text: &str) -> Vec<(usize, String)> {
    let parsed = Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter();
    let links = parsed.filter_map(|(event, place)| match event {
        // Its address is without `mailto:`.
        Event::Start(Tag::Link {
            link_type: LinkType::Email,
            ..
        }) => None,
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => Some((
            text[..place.start].matches('\n').count(),
            dest_url.into_string(),
        )),
        _ => None,
    });
    links.collect()
}

/// The names by which the headings of a page are linked to, on GitHub as in mdBook.
fn headings(text: &str) -> HashSet<String> {
    let mut found = HashSet::new();
    let mut heading = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match (event, &mut heading) {
            (Event::Start(Tag::Heading { .. }), _) => heading = Some(String::new()),
            (Event::Text(part) | Event::Code(part), Some(text)) => text.push_str(&part),
            (Event::End(TagEnd::Heading(_)), Some(text)) => {
                let name = linked(text);
                let again = (1..).map(|number| format!("{name}-{number}"));
                let mut names = std::iter::once(name.clone()).chain(again);
                // Of headings with the same text, all but the first have a number.
                _ = names.find(|name| found.insert(name.clone()));
                heading = None;
            }
            _ => {}
        }
    }
    found
}

fn linked(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
    let name: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
    name.to_lowercase()
}

/// `folder` and a path relative to it, or if it begins with a slash, to the repository; none if it leaves the
/// repository.
fn joined(folder: &str, path: &str) -> Option<String> {
    let folder = if path.starts_with('/') { "" } else { folder };
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            ".." => _ = parts.pop()?,
            "." | "" => {}
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::*;

    #[test]
    fn links_to_files_headings_and_other_sites_pass() {
        let page = "[a](docs/b.md) [b](docs/b.md#how-it-is-made-1) [c](#top) ![d](d.svg) <a@b.org> [e](https://x.y/z) [f][g]\n\n# Top\n\n\
                    ```\n[no](link.md)\n```\n`[no](link.md)`\n\n[g]: docs\n";
        MadeUp::new(&[
            ("a.md", page),
            ("d.svg", ""),
            (
                "docs/b.md",
                "# How it is `made`\n## How it is made?\n[a](../a.md#top) [a](/a.md#top)\n",
            ),
            ("docs/page.md", "[rust](crate::gone)\n"),
        ])
        .assert_none(check);
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        for (link, words) in [
            ("gone.md", "does not exist"),
            ("docs/b.md#gone", "a heading that is not there"),
            ("#gone", "no heading of this page"),
            ("../a.md", "outside of the repository"),
        ] {
            for page in [
                format!("# A\n\n[it](<{link}>)\n"),
                format!("\n\n[it]\n\n[it]: {link}\n"),
            ] {
                let made_up = MadeUp::new(&[("a.md", &page), ("docs/b.md", "# B\n")]);
                made_up.assert_one(check, "a.md:3", words);
            }
        }
    }

    #[test]
    fn a_page_of_the_book_is_listed_and_links_to_the_book() {
        let contents = "- [A](a.md)\n";
        let sound = [
            (CONTENTS, contents),
            (
                "book/src/a.md",
                "# A\n\n{{#include ../../docs/b.md}}\n[b](#b)\n",
            ),
            ("docs/b.md", "# B\n"),
        ];
        let made_up = MadeUp::new(&sound);
        made_up.assert_none(check);
        made_up.write("docs/b.md", "# B\n\n[c](c.md)\n");
        made_up.write("docs/c.md", "");
        made_up.assert_one(check, "book/src/a.md:3", "does not exist");
        made_up.write("docs/b.md", "# B\n");
        made_up.write("book/src/a.md", "[b](../../docs/b.md)\n");
        made_up.assert_one(check, "book/src/a.md:1", "which the book does not have");
        made_up.write("book/src/a.md", "");
        made_up.write("book/src/c.md", "");
        made_up.assert_one(check, "book/src/c.md:1", "does not name");
    }
}
