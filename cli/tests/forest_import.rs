//! `weald forest import`: all of a text or nothing of it, what an import that was ended has left, and erasable values.

#![allow(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that goes wrong"
)]

#[path = "support/program.rs"]
mod program;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use pollster::block_on;
use program::{fails, lines, says, state, weald};
use weald_forest::{Attributes, Tree, Value};
use weald_journal::{DiskForest, ReadOnlyForest};

fn line(name: &str) -> String {
    format!("{{\"name\":\"{name}\",\"tree\":{{\"attributes\":{{\"is\":\"{name}\"}}}}}}\n")
}

#[test]
fn a_text_with_a_fault_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (there, new) = (directory.path().join("there"), directory.path().join("new"));
    drop(block_on(DiskForest::open(&there)).unwrap());
    let before = state(&there);
    let long = "x".repeat(1025);
    let [a, b] = ["a", "b"].map(line);
    for (text, code, says) in [
        (
            format!("{a}{b}{a}"),
            2,
            "line 3: line 1 has a tree named `a`, too",
        ),
        (
            format!("{a}{}", line("")),
            2,
            "line 2: `` is no name of a tree",
        ),
        (format!("{a}\n{}", line(&long)), 2, "line 3: `xxx"),
        (format!("{a}{b}{{}}"), 1, "line 3 has no name"),
        (
            format!("{a}{b}{}", line("c").replace("\"is\"", "is")),
            1,
            "line 3 is no tree",
        ),
        (
            line("weald forest import, unfinished"),
            2,
            "that it has not finished",
        ),
        (String::new(), 4, "there is nothing to import"),
        ("\n \n".to_owned(), 4, "there is nothing to import"),
    ] {
        for (path, words) in [(&there, &["import"][..]), (&new, &["import", "--create"])] {
            let (ended, out, err) = weald(path, words, &text);
            assert_eq!((ended, out.as_str()), (code, ""), "{text}: {err}");
            assert!(err.contains(says), "{text}: {err}");
        }
        assert!(!new.exists(), "{text}");
        assert_eq!(state(&there), before, "{text}");
    }
    let (code, out, err) = weald(&new, &["import", "--create", ""], "{}");
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    assert!(err.contains("is no name") && !new.exists(), "{err}");
}

#[test]
fn an_import_that_was_ended_is_gone_on_with() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    // What an import leaves that is ended in the middle of its second tree, which has erasable values.
    let forest = block_on(DiskForest::open(path)).unwrap();
    block_on(forest.create_from(
        "a",
        Tree::from_json("{\"attributes\":{\"is\":\"a\"}}").unwrap(),
    ))
    .unwrap();
    let left = block_on(forest.create("weald forest import, unfinished")).unwrap();
    let mut edit = left.edit();
    edit.put_erasable(edit.root(), "secret", "hush").unwrap();
    block_on(edit.commit()).unwrap();
    let root = left.view().tree().root().id();
    let unfinished = left.view().version();
    drop((left, forest));

    let b = r#"{"name":"b","tree":{"attributes":{"secret":{"erasable":"hush"}}}}"#;
    let text = format!("{}{b}\n{}", line("a"), line("c"));
    let before = state(path);
    let (code, out, err) = weald(path, &["import"], &text);
    assert_eq!((code, out.as_str()), (1, ""), "{err}");
    assert!(
        err.contains("nothing was imported. Add --skip-existing"),
        "{err}"
    );
    let (_, _, err) = weald(path, &["import", "a"], "{}");
    assert!(err.contains("Give the new one another name"), "{err}");
    assert_eq!(state(path), before);

    let (code, out, err) = weald(path, &["import", "--skip-existing"], &text);
    assert_eq!((code, err.as_str()), (0, ""));
    let told: Vec<_> = out
        .lines()
        .map(|line| line.split(", v").next().unwrap())
        .collect();
    assert_eq!(
        told,
        ["a: skipped, there is one already", "b: 1 node", "c: 1 node"]
    );
    let names: Vec<_> = lines(path, &["ls"])
        .iter()
        .map(|line| line["name"].to_string())
        .collect();
    assert_eq!(names, ["\"a\"", "\"b\"", "\"c\""]);
    assert_eq!(
        says(path, &["export", "b"]).trim_end(),
        r#"{"attributes":{"secret":{"erasable":"hush"}}}"#
    );
    // The bytes of the tree that was left are gone from the history, too.
    let moment = weald_journal::Moment::Version(unfinished);
    let then = block_on(ReadOnlyForest::at(path, moment)).unwrap();
    let left = then.get("weald forest import, unfinished").unwrap();
    let left = left.snapshot();
    let value = then.value(left.tree().node(root).unwrap(), "secret");
    assert!(matches!(value, Some(Value::Erased { .. })), "{value:?}");

    // All are there: nothing is opened for writing.
    let before = state(path);
    let (code, out, err) = weald(path, &["import", "--skip-existing", "--json"], &text);
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out.lines().next(), Some(r#"{"name":"a","skipped":true}"#));
    assert_eq!((out.lines().count(), state(path)), (3, before));
}

#[test]
fn what_was_printed_before_a_kill_is_there_and_the_rest_follows() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    // Long names, so that stdout is full long before the end, and the program waits.
    let names: Vec<_> = (0..200).map(|number| format!("{number:01000}")).collect();
    let text: String = names.iter().map(|name| line(name)).collect();
    let mut child = Command::new(env!("CARGO_BIN_EXE_weald"))
        .arg("forest")
        .arg(path)
        .args(["import", "--create"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = stdout.next().unwrap().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let printed = 1 + stdout.map(Result::unwrap).count();
    assert!(first.starts_with(&names[0]));
    let there = lines(path, &["ls"]).len();
    assert!(printed < names.len(), "stdout takes less");
    // Each is printed before the next is begun.
    assert!(
        (printed..=printed + 1).contains(&there),
        "{printed} were printed, {there} are there"
    );

    let (code, out, err) = weald(path, &["import", "--skip-existing"], &text);
    assert_eq!((code, err.as_str()), (0, ""));
    let skipped = out
        .lines()
        .filter(|line| line.ends_with(": skipped, there is one already"));
    assert_eq!((skipped.count(), out.lines().count()), (there, names.len()));
    // As after an import that was not killed.
    assert_eq!(says(path, &["export"]), text);
}

#[test]
fn erasable_values_stay_erasable() {
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (
        directory.path().join("first"),
        directory.path().join("second"),
    );
    let forest = block_on(DiskForest::open(&first)).unwrap();
    let people = block_on(forest.create("people")).unwrap();
    let mut edit = people.edit();
    let ada = edit
        .append(edit.root(), Attributes::new().with("born", "1815"))
        .unwrap();
    edit.put_erasable(ada, "name", "Ada").unwrap();
    edit.put_erasable(ada, "bytes", [0, 255]).unwrap();
    edit.put_erasable(ada, "gone", "hush").unwrap();
    block_on(edit.commit()).unwrap();
    block_on(people.erase(ada, "gone")).unwrap();
    drop((people, forest));

    let all = says(&first, &["export"]);
    assert!(
        all.contains(r#""born":"1815","bytes":{"erasable":{"hex":"00ff"}},"gone":{"erased":""#),
        "{all}"
    );
    assert!(all.contains(r#""name":{"erasable":"Ada"}"#), "{all}");
    // One that was printed before erasable values were marked.
    let old = r#"{"attributes":{"name":"Ada","gone":{"erased":"5"}}}"#;
    for (words, text) in [
        (&["import", "--create"][..], &*all),
        (&["import", "old"], old),
    ] {
        let (code, _, err) = weald(&second, words, text);
        assert_eq!((code, err.as_str()), (0, ""));
    }
    let forest = block_on(DiskForest::open(&second)).unwrap();
    let people = forest.get("people").unwrap();
    let newest = people.snapshot();
    let node = newest.tree().root().children().next().unwrap();
    let value = |name| forest.value(node, name);
    assert_eq!(value("name"), Some(Value::Erasable(b"Ada"[..].into())));
    assert_eq!(value("bytes"), Some(Value::Erasable([0, 255][..].into())));
    assert_eq!(value("born"), Some(Value::Plain(b"1815")));
    assert_eq!(value("gone"), None);
    block_on(people.erase(node.id(), "name")).unwrap();
    assert!(matches!(value("name"), Some(Value::Erased { .. })));
    assert_eq!(forest.list(), ["old", "people"]);
    let old = forest.get("old").unwrap().snapshot();
    assert_eq!(
        forest.value(old.tree().root(), "name"),
        Some(Value::Plain(b"Ada"))
    );
    assert_eq!(
        says(&second, &["export", "old"]).trim_end(),
        r#"{"attributes":{"name":"Ada"}}"#
    );
}

#[test]
fn a_lock_that_cannot_be_reached_is_no_other_process() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    drop(block_on(DiskForest::open(path)).unwrap());
    // Nobody can write to it, the administrator neither.
    fs::remove_file(path.join("lock")).unwrap();
    fs::create_dir(path.join("lock")).unwrap();
    let (code, out, err) = weald(path, &["import", "new"], "{}");
    assert_eq!((code, out.as_str()), (1, ""), "{err}");
    assert!(
        err.contains("its file `lock` cannot be written to"),
        "{err}"
    );
}

#[test]
fn an_erasable_value_under_too_long_a_name_is_a_fault_of_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let (path, text) = (directory.path().join("d"), directory.path().join("text"));
    let name = "n".repeat(1025);
    let tree = format!(r#"{{"attributes":{{"{name}":{{"erasable":"v"}}}}}}"#);
    let lines =
        format!("{{\"name\":\"first\",\"tree\":{{}}}}\n{{\"name\":\"second\",\"tree\":{tree}}}\n");
    fs::write(&text, lines).unwrap();
    let (code, err) = fails(
        &path,
        &["import", "--create", "--from", text.to_str().unwrap()],
    );
    assert!(
        code == 1 && err.contains("line 2") && err.contains("1025"),
        "{err}"
    );
    assert!(!path.exists(), "nothing was created");
}

#[test]
fn a_name_is_shown_as_what_it_is_whatever_characters_it_has() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let name = "a\u{202e}b \"c\"";
    let text = format!("{}\n", serde_json::json!({ "tree": {}, "name": name }));
    let shown = "a\\u{202e}b \"c\"";
    let (code, out, err) = weald(path, &["import", "--create"], &text);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with(&format!("{shown}: 1 node")), "{out}");
    let forest = block_on(DiskForest::open(path)).unwrap();
    let tree = forest.get(name).unwrap();
    block_on(tree.tag("new\u{202e}line", tree.view().version())).unwrap();
    drop((tree, forest));
    let listed = says(path, &["ls"]);
    assert!(listed.starts_with(shown), "{listed}");
    assert!(listed.ends_with("  new\\u{202e}line\n"), "{listed}");
    let log = says(path, &["log"]);
    assert!(log.contains(&format!("create {shown}, 1 node")), "{log}");
    assert!(
        log.contains(&format!("{shown}: tag new\\u{{202e}}line on ")),
        "{log}"
    );
    let (code, err) = fails(path, &["show", "\u{202e}"]);
    assert_eq!(code, 4);
    assert!(err.contains("no tree is named `\\u{202e}`"), "{err}");
}
