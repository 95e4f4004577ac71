//! The ratchet: the lengths that files and functions over the limits have today.
//!
//! - An entry is `<lines> <path>` for a file and `<lines> <path>#<function>` for a function.
//! - An entry never lies above the code: when the code shrinks, the entry has to follow, so that
//!   what was won is not lost again.

use super::Finding;
use super::repository::Repository;

pub(super) const LIST: &str = "xtask/ratchet.txt";

/// A length that is permitted although it is over the limit.
pub(super) struct Entry {
    pub(super) line: usize,
    pub(super) lines: usize,
    pub(super) subject: String,
}

/// Reads the list; a line that is no entry is a finding. A list that is missing permits nothing.
pub(super) fn entries(repository: &Repository) -> (Vec<Entry>, Vec<Finding>) {
    let (mut entries, mut findings) = (Vec::<Entry>::new(), Vec::new());
    let text = repository.file(LIST).map_or("", |file| &file.text);
    for (at, text) in text.lines().enumerate() {
        if text.trim().is_empty() || text.starts_with('#') {
            continue;
        }
        let sentence = match entry(at + 1, text) {
            None => "This line is no entry; write `<lines> <path>` or `<lines> <path>#<function>`.",
            Some(entry) if entries.iter().any(|e| e.subject == entry.subject) => {
                "This entry stands here twice; take one out."
            }
            Some(entry) => {
                entries.push(entry);
                continue;
            }
        };
        findings.push(Finding::new(LIST, at + 1, sentence));
    }
    (entries, findings)
}

fn entry(line: usize, text: &str) -> Option<Entry> {
    let (lines, subject) = text.trim().split_once(' ')?;
    Some(Entry {
        line,
        lines: lines.parse().ok()?,
        subject: subject.trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::*;

    #[test]
    fn comments_and_entries_are_told_apart() {
        let text = "# Head.\n\n410 a/b.rs\n 80 a/b.rs#f\n";
        let (entries, findings) = entries(&MadeUp::new(&[(LIST, text)]).load());
        let entries: Vec<_> = entries
            .iter()
            .map(|e| (e.line, e.lines, &*e.subject))
            .collect();
        assert_eq!(entries, [(3, 410, "a/b.rs"), (4, 80, "a/b.rs#f")]);
        assert_eq!(findings, []);
    }

    #[test]
    fn lines_that_are_no_entries_and_entries_that_stand_twice_are_found() {
        for (text, line) in [
            ("a/b.rs\n", 1),
            ("many a/b.rs\n", 1),
            ("410 a.rs\n420 a.rs\n", 2),
        ] {
            let (_, findings) = entries(&MadeUp::new(&[(LIST, text)]).load());
            assert_eq!(
                findings.iter().map(|f| f.line).collect::<Vec<_>>(),
                [line],
                "{text}"
            );
        }
    }
}
