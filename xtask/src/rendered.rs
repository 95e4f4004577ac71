//! Judges the documentation of the crate `weald` as it is rendered: what its users see.
//!
//! - An example names no other crate of ours, because a program that depends on `weald` alone could not compile it.
//! - A link leads to a page, and to a place on that page.
//! - The number of items with an example only grows.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// How many items have an example on their page. Raise it when there are more.
const WITH_EXAMPLES: usize = 217;

/// Parts of links that are not ours. rustdoc repeats the documentation of traits of `tracing` and `futures-io` on pages
/// of our types, where it cannot resolve their links: Rust paths, and a page of `tracing`. A path in our own
/// documentation that cannot be resolved is a warning. The last is in a script.
const FOREIGN: [&str; 3] = ["::", "dispatcher#", "${"];

/// Judges the pages in `documentation`, which is the `doc` of a target directory, and prints the count.
///
/// An error has a line for each finding.
pub fn judge(documentation: &Path) -> Result<(), String> {
    judge_all(documentation, WITH_EXAMPLES)
}

fn judge_all(documentation: &Path, expected: usize) -> Result<(), String> {
    let mut pages = Pages::default();
    let mut findings = Vec::new();
    let (mut items, mut with_examples) = (0, 0);
    for page in html_below(&documentation.join("weald"))? {
        let text = read(&page)?;
        let shown = page.strip_prefix(documentation).unwrap_or(&page);
        let examples = examples(&text);
        if is_item(&page) {
            items += 1;
            with_examples += usize::from(!examples.is_empty());
        }
        for name in examples.iter().filter_map(|example| other_crate(example)) {
            findings.push(format!(
                "{}: an example names `{name}`; write it with the names that `weald` gives it.",
                shown.display()
            ));
        }
        for link in links(&text).filter(|link| !pages.leads_somewhere(&page, link)) {
            findings.push(format!("{}: the link `{link}` is dead.", shown.display()));
        }
    }
    println!("{with_examples} of {items} items of `weald` have an example.");
    if with_examples < expected {
        findings.push(format!(
            "{with_examples} items have an example, and {expected} had one; write the missing ones."
        ));
    }
    if findings.is_empty() {
        return Ok(());
    }
    Err(findings.join("\n"))
}

/// Whether the page is that of one item: a type, a function, a trait.
fn is_item(page: &Path) -> bool {
    let name = page.file_name().unwrap_or_default().to_string_lossy();
    !["index.html", "all.html"].contains(&name.as_ref())
}

fn html_below(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let unreadable = |e| format!("{} could not be read: {e}.", folder.display());
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "html") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn read(page: &Path) -> Result<String, String> {
    fs::read_to_string(page).map_err(|e| format!("{} could not be read: {e}.", page.display()))
}

/// The code of each example on a page.
fn examples(page: &str) -> Vec<String> {
    let begins = page
        .split("rust-example-rendered\"><code>")
        .skip(1)
        .filter_map(|rest| rest.split("</code>").next());
    begins.map(without_tags).collect()
}

fn without_tags(html: &str) -> String {
    let mut pieces = html.split('<');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| {
        text + piece.split_once('>').map_or("", |(_, after)| after)
    })
}

/// The first name of a crate of ours other than `weald` in an example.
fn other_crate(example: &str) -> Option<&str> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = example.split(|c: char| !is_name(c));
    words.find(|word| word.starts_with("weald_"))
}

/// The targets of the links on a page that stay in the documentation.
fn links(page: &str) -> impl Iterator<Item = &str> {
    page.split(" href=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .filter(|link| !link.contains("://") && !FOREIGN.iter().any(|part| link.contains(part)))
}

/// The pages that were linked to so far; none if there is no such page.
#[derive(Default)]
struct Pages(HashMap<PathBuf, Option<String>>);

impl Pages {
    fn leads_somewhere(&mut self, from: &Path, link: &str) -> bool {
        let (path, place) = link.split_once('#').unwrap_or((link, ""));
        let target = match path {
            "" => from.to_owned(),
            path => joined(from.parent().unwrap_or(from), path),
        };
        let text = self.0.entry(target.clone()).or_insert_with(|| {
            fs::read(&target)
                .ok()
                .map(|b| String::from_utf8_lossy(&b).into_owned())
        });
        let Some(text) = text else { return false };
        // A page that only leads to another one passes the place on to it.
        if let Some(on) = text.split("http-equiv=\"refresh\" content=\"0;URL=").nth(1) {
            let on = on.split('"').next().unwrap_or_default();
            let on = format!("{on}#{place}");
            return self.leads_somewhere(&target, &on);
        }
        // The places of sources are lines, which a script finds.
        let is_source = target.components().any(|part| part.as_os_str() == "src");
        place.is_empty() || is_source || text.contains(&format!("id=\"{place}\""))
    }
}

/// `folder` and a path relative to it, which may go up.
fn joined(folder: &Path, path: &str) -> PathBuf {
    let mut target = folder.to_owned();
    for part in path.split('/') {
        match part {
            ".." => _ = target.pop(),
            "." => {}
            part => target.push(part),
        }
    }
    target
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::made_up::MadeUp;

    const EXAMPLE: &str =
        "<pre class=\"rust rust-example-rendered\"><code><span>use</span> weald::net;</code></pre>";

    fn judged(pages: &[(&str, &str)], expected: usize) -> Result<(), String> {
        judge_all(MadeUp::new(pages).root(), expected)
    }

    #[test]
    fn examples_with_names_of_weald_alone_and_links_that_lead_somewhere_pass() {
        let page = format!("{EXAMPLE}<a href=\"index.html#all\">all</a><a href=\"../there/#x\">");
        let pages = [
            ("weald/fn.spawn.html", page.replace("/#x", "/fn.x.html#x")),
            (
                "weald/index.html",
                "<h2 id=\"all\"><a href=\"#all\">".to_owned(),
            ),
            (
                "there/fn.x.html",
                "<meta http-equiv=\"refresh\" content=\"0;URL=../weald/fn.y.html\">".to_owned(),
            ),
            (
                "weald/fn.y.html",
                "<p id=\"x\"><a href=\"https://a.b/c\">".to_owned(),
            ),
        ];
        let pages: Vec<_> = pages
            .iter()
            .map(|(path, text)| (*path, text.as_str()))
            .collect();
        assert_eq!(judged(&pages, 1), Ok(()));
    }

    #[test]
    fn an_example_with_the_name_of_another_crate_is_found() {
        let example = EXAMPLE.replace("weald::net", "weald_<i>x</i>net::fs");
        let found = judged(&[("weald/fn.a.html", &example)], 0).expect_err("it names weald_xnet");
        assert!(
            found.starts_with("weald/fn.a.html: an example names `weald_xnet`"),
            "{found}"
        );
    }

    #[test]
    fn a_dead_link_is_found() {
        for link in [
            "gone.html",
            "fn.b.html#gone",
            "#gone",
            "../weald_net/index.html",
        ] {
            let page = format!("<a class=\"fn\" href=\"{link}\">");
            let pages = [("weald/fn.a.html", page.as_str()), ("weald/fn.b.html", "")];
            let found = judged(&pages, 0).expect_err(link);
            assert_eq!(
                found,
                format!("weald/fn.a.html: the link `{link}` is dead.")
            );
        }
    }

    #[test]
    fn fewer_examples_than_before_are_found() {
        let pages = [("weald/fn.a.html", EXAMPLE), ("weald/index.html", EXAMPLE)];
        assert_eq!(judged(&pages, 1), Ok(()));
        let found = judged(&pages, 2).expect_err("there is one less");
        assert!(
            found.starts_with("1 items have an example, and 2 had one"),
            "{found}"
        );
    }
}
