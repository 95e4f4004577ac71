//! The parts of ARCHITECTURE.md that checks read.
//!
//! - `## Crates` has one table, `| crate | its job | depends on | largest circle |`. The third
//!   column names folders of crates, separated by commas, or is a dash; the fourth is a number.

use super::Finding;
use super::repository::Repository;

pub(super) const PAGE: &str = "ARCHITECTURE.md";
const TABLE_HEAD: [&str; 4] = ["crate", "its job", "depends on", "largest circle"];

/// One row of the table of crates.
pub(super) struct Row {
    pub(super) line: usize,
    pub(super) folder: String,
    pub(super) depends_on: Vec<String>,
    pub(super) circle: usize,
}

/// Reads the table of crates. A malformed table is a finding.
pub(super) fn crates(repository: &Repository) -> Result<Vec<Row>, Finding> {
    let lines = section(repository, "Crates")?;
    let mut table = lines.iter().filter(|(_, text)| text.starts_with('|'));
    let (head, rule) = (table.next(), table.next());
    if head.is_none_or(|(_, text)| cells(text) != TABLE_HEAD) || rule.is_none() {
        let sentence = "The section `## Crates` has no table with the columns `crate`, \
                        `its job`, `depends on` and `largest circle`; write one.";
        return Err(Finding::new(
            PAGE,
            head.map_or(1, |(line, _)| *line),
            sentence,
        ));
    }
    table.map(|(line, text)| row(*line, text)).collect()
}

fn row(line: usize, text: &str) -> Result<Row, Finding> {
    let cells = cells(text);
    let [folder, _, depends_on, circle] = cells.as_slice() else {
        let sentence = "This row of the table of crates does not have four columns.";
        return Err(Finding::new(PAGE, line, sentence));
    };
    let circle = circle.parse().map_err(|_| {
        let sentence = "The column `largest circle` of this row is not a number of files.";
        Finding::new(PAGE, line, sentence)
    })?;
    let names = depends_on
        .split(',')
        .map(bare)
        .filter(|n| !["", "–", "—", "-"].contains(n));
    let depends_on = names.map(str::to_owned).collect();
    Ok(Row {
        line,
        folder: bare(folder).to_owned(),
        depends_on,
        circle,
    })
}

/// The cells of a table row, trimmed. A bar after a backslash does not separate cells.
fn cells(text: &str) -> Vec<String> {
    let text = text.trim().trim_start_matches('|').replace("\\|", "\u{0}");
    let text = text.strip_suffix('|').unwrap_or(&text);
    text.split('|')
        .map(|cell| cell.replace('\u{0}', "|").trim().to_owned())
        .collect()
}

fn bare(name: &str) -> &str {
    name.trim().trim_matches('`')
}

/// The lines below the heading `## name`, up to the next heading of its level, numbered from 1.
fn section<'a>(repository: &'a Repository, name: &str) -> Result<Vec<(usize, &'a str)>, Finding> {
    let missing = || {
        let sentence = format!("The section `## {name}` is missing, and tidy reads it.");
        Finding::new(PAGE, 1, sentence)
    };
    let page = repository.file(PAGE).ok_or_else(missing)?;
    let heading = format!("## {name}");
    let mut lines = page
        .text
        .lines()
        .enumerate()
        .map(|(at, text)| (at + 1, text));
    lines
        .find(|(_, text)| text.trim_end() == heading)
        .ok_or_else(missing)?;
    Ok(lines
        .take_while(|(_, text)| !text.starts_with("## "))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::*;

    #[test]
    fn rows_give_folders_and_arrows() {
        let text = "## Crates\n\n| crate | its job | depends on | largest circle |\n|--|--|--|--|\n\
                    | `a` | x \\| y | – | 1 |\n| b | z | `a`, c | 12 |\n\n## Unsafe\n";
        let rows = crates(&MadeUp::new(&[(PAGE, text)]).load()).expect("the table is well formed");
        let rows: Vec<_> = rows
            .iter()
            .map(|r| (r.line, &*r.folder, r.depends_on.join(" "), r.circle))
            .collect();
        let expected = [(5, "a", String::new(), 1), (6, "b", "a c".to_owned(), 12)];
        assert_eq!(rows, expected);
    }

    #[test]
    fn a_page_a_section_a_table_or_a_cell_that_is_missing_is_a_finding() {
        let head = "## Crates\n| crate | its job | depends on | largest circle |\n|--|--|--|--|\n";
        for (path, text, line) in [
            ("OTHER.md", "## Crates\n", 1),
            (PAGE, "# Crates\n", 1),
            (PAGE, "## Crates\n\ntext\n", 1),
            (PAGE, "## Crates\n| crate | depends on |\n|--|--|\n", 2),
            (PAGE, &format!("{head}| a | b |\n"), 4),
            (PAGE, &format!("{head}| a | b | – | few |\n"), 4),
        ] {
            let finding = crates(&MadeUp::new(&[(path, text)]).load()).err();
            assert_eq!(finding.map(|f| f.line), Some(line), "{text}");
        }
    }
}
