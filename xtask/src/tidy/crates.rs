//! Check: the crates depend on each other as the table in ARCHITECTURE.md says.
//!
//! Build dependencies and those of a platform count. Those of tests and examples do not, because they
//! are not passed on.

use toml::{Table, Value};

use super::Finding;
use super::architecture::{self, PAGE, Row};
use super::repository::Repository;

/// One crate of the workspace, with its manifest.
pub(super) struct Member {
    pub(super) folder: String,
    pub(super) manifest: String,
    pub(super) table: Table,
}

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let (members, mut findings) = members(repository);
    let rows = match architecture::crates(repository) {
        Ok(rows) => rows,
        Err(finding) => return [findings, vec![finding]].concat(),
    };
    for member in &members {
        match rows.iter().find(|row| row.folder == member.folder) {
            Some(row) => findings.extend(compare(row, &arrows(&members, member))),
            None => findings.push(Finding::new(&member.manifest, 1, no_row(&member.folder))),
        }
    }
    for row in rows
        .iter()
        .filter(|row| members.iter().all(|m| m.folder != row.folder))
    {
        let sentence = format!(
            "`{}` is not a crate of the workspace; remove the row.",
            row.folder
        );
        findings.push(Finding::new(PAGE, row.line, sentence));
    }
    findings
}

fn no_row(folder: &str) -> String {
    format!("The crate `{folder}` is not in the table of crates in {PAGE}; add a row for it.")
}

fn compare(row: &Row, arrows: &[String]) -> Vec<Finding> {
    let folder = &row.folder;
    let undeclared = arrows.iter().filter(|arrow| !row.depends_on.contains(arrow)).map(|arrow| {
        format!("`{folder}` depends on `{arrow}`, and the table does not say so; a new dependency needs a decision.")
    });
    let unused = row
        .depends_on
        .iter()
        .filter(|arrow| !arrows.contains(arrow))
        .map(|arrow| {
            format!(
                "The table says that `{folder}` depends on `{arrow}`, and its manifest does not."
            )
        });
    undeclared
        .chain(unused)
        .map(|sentence| Finding::new(PAGE, row.line, sentence))
        .collect()
}

/// The crates of the workspace. A missing or malformed manifest is a finding.
pub(super) fn members(repository: &Repository) -> (Vec<Member>, Vec<Finding>) {
    let root = match manifest(repository, "Cargo.toml") {
        Ok(root) => root,
        Err(finding) => return (vec![], vec![finding]),
    };
    let folders = root
        .get("workspace")
        .and_then(|w| w.get("members"))
        .and_then(Value::as_array);
    let folders = folders.into_iter().flatten().filter_map(Value::as_str);
    let (mut members, mut findings) = (Vec::new(), Vec::new());
    for folder in folders {
        let path = format!("{folder}/Cargo.toml");
        match manifest(repository, &path) {
            Ok(table) => members.push(Member {
                folder: folder.to_owned(),
                manifest: path,
                table,
            }),
            Err(finding) => findings.push(finding),
        }
    }
    if members.is_empty() && findings.is_empty() {
        findings.push(Finding::new(
            "Cargo.toml",
            1,
            "The workspace has no members to check.",
        ));
    }
    (members, findings)
}

fn manifest(repository: &Repository, path: &str) -> Result<Table, Finding> {
    let Some(file) = repository.file(path) else {
        return Err(Finding::new(
            path,
            1,
            "This manifest of the workspace is missing.",
        ));
    };
    file.text.parse().map_err(|error: toml::de::Error| {
        let before = error.span().map_or("", |span| &file.text[..span.start]);
        let line = before.matches('\n').count() + 1;
        Finding::new(
            path,
            line,
            format!("The manifest is malformed: {}.", error.message()),
        )
    })
}

/// The folders of the crates that `member` depends on, sorted.
fn arrows(members: &[Member], member: &Member) -> Vec<String> {
    let folder = |package: &str| {
        let is_named = |m: &&Member| {
            let name = m.table.get("package").and_then(|p| p.get("name"));
            name.and_then(Value::as_str) == Some(package)
        };
        members.iter().find(is_named).map(|m| m.folder.clone())
    };
    let platforms = member.table.get("target").and_then(Value::as_table);
    let platforms = platforms
        .into_iter()
        .flat_map(Table::values)
        .filter_map(Value::as_table);
    let mut arrows: Vec<String> = [&member.table]
        .into_iter()
        .chain(platforms)
        .flat_map(|table| [table.get("dependencies"), table.get("build-dependencies")])
        .filter_map(|dependencies| dependencies?.as_table())
        .flatten()
        .filter_map(|(key, value)| {
            let renamed = value.get("package").and_then(Value::as_str);
            folder(renamed.unwrap_or(key))
        })
        .collect();
    arrows.sort();
    arrows.dedup();
    arrows
}

#[cfg(test)]
mod tests {
    use super::super::made_up::MadeUp;
    use super::*;

    #[test]
    fn the_dependencies_of_the_table_pass() {
        MadeUp::sound().assert_none(check);
    }

    #[test]
    fn a_dependency_that_is_not_in_the_table_is_found() {
        for arrow in [
            "[dependencies]\nweald-process.path = \"../process\"\n",
            "[build-dependencies]\nweald-process.path = \"../process\"\n",
            "[target.'cfg(unix)'.dependencies]\nweald-process.path = \"../process\"\n",
            "[dependencies]\np = { path = \"../process\", package = \"weald-process\" }\n",
        ] {
            let made_up = MadeUp::sound();
            made_up.write(
                "kernel/Cargo.toml",
                &format!("package.name = \"weald-kernel\"\n{arrow}"),
            );
            made_up.assert_one(check, "ARCHITECTURE.md:7", "`kernel` depends on `process`");
        }
    }

    #[test]
    fn a_dependency_that_is_not_in_the_manifest_is_found() {
        let made_up = MadeUp::sound();
        made_up.write(
            "process/Cargo.toml",
            "[package]\nname = \"weald-process\"\n",
        );
        made_up.assert_one(check, "ARCHITECTURE.md:8", "its manifest does not");
    }

    #[test]
    fn a_dependency_of_the_tests_does_not_count() {
        let made_up = MadeUp::sound();
        let text =
            "package.name = \"weald-kernel\"\n[dev-dependencies]\nweald-process.path = \"x\"\n";
        made_up.write("kernel/Cargo.toml", text);
        made_up.assert_none(check);
    }

    #[test]
    fn a_crate_without_a_row_and_a_row_without_a_crate_are_found() {
        let made_up = MadeUp::sound();
        made_up.write(
            "Cargo.toml",
            "[workspace]\nmembers = [\"kernel\", \"process\", \"lab\"]\n",
        );
        made_up.write("lab/Cargo.toml", "[package]\nname = \"weald-lab\"\n");
        made_up.assert_one(check, "lab/Cargo.toml:1", "`lab` is not in the table");
        made_up.write("Cargo.toml", "[workspace]\nmembers = [\"kernel\"]\n");
        made_up.assert_one(check, "ARCHITECTURE.md:8", "`process` is not a crate");
    }

    #[test]
    fn a_manifest_that_is_missing_or_malformed_is_found() {
        let made_up = MadeUp::sound();
        made_up.write(
            "Cargo.toml",
            "[workspace]\nmembers = [\"kernel\", \"process\", \"gone\"]\n",
        );
        made_up.assert_one(check, "gone/Cargo.toml:1", "missing");
        let made_up = MadeUp::sound();
        made_up.write("Cargo.toml", "[workspace]\nmembers = [\n");
        assert!(made_up.found(check)[0].contains("malformed"));
    }
}
