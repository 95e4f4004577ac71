//! Check: no two pages of `docs/decisions` have the same number, so that a number names one page.

use std::collections::BTreeMap;

use super::Finding;
use super::repository::Repository;

const FOLDER: &str = "docs/decisions/";

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut pages = BTreeMap::new();
    let mut findings = Vec::new();
    for file in &repository.files {
        let Some(name) = file.path.strip_prefix(FOLDER) else {
            continue;
        };
        let Some((number, _)) = name.split_once('-') else {
            continue;
        };
        if let Some(first) = pages.insert(number, &file.path) {
            let sentence =
                format!("has the number {number} of `{first}`; give it the next free one.");
            findings.push(Finding::new(&file.path, 1, sentence));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::*;

    #[test]
    fn pages_with_numbers_of_their_own_pass() {
        MadeUp::new(&[
            ("docs/decisions/0001-a.md", "# 0001: a\n"),
            ("docs/decisions/0002-b.md", "# 0002: b\n"),
            ("docs/0001-c.md", "# c\n"),
        ])
        .assert_none(check);
    }

    #[test]
    fn a_second_page_of_a_number_is_found() {
        let made_up = MadeUp::new(&[
            ("docs/decisions/0001-a.md", "# 0001: a\n"),
            ("docs/decisions/0001-b.md", "# 0001: b\n"),
        ]);
        let found = check(&made_up.load());
        let [finding] = &found[..] else {
            panic!("{found:?}")
        };
        assert!(finding.path.starts_with("docs/decisions/0001-") && finding.line == 1);
    }
}
