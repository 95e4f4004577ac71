//! `weald forest` on real directories: one that a program has open, one that is closed, damaged ones, none.

#![allow(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that goes wrong"
)]

#[path = "support/program.rs"]
mod program;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use pollster::block_on;
use program::{fails, lines, says, state, weald};
use serde_json::Value as Json;
use weald_forest::{Attributes, Forest, NodeId, TreeHandle};
use weald_journal::{Directory, DiskForest, DiskJournal, MasterKey, Settings};

fn append(tree: &TreeHandle, parent: u64, text: &str) -> NodeId {
    let mut edit = tree.edit();
    let parent = NodeId::new(parent).unwrap();
    let node = edit
        .append(parent, Attributes::new().with("text", text))
        .unwrap();
    block_on(edit.commit().bytes(b"by Ada")).unwrap();
    node
}

/// A forest with two trees: `notes`, with a tag, an index, a moved node and erasable values, and `other`.
fn fill(forest: &Forest) {
    let notes = block_on(forest.create("notes")).unwrap();
    append(&notes, 1, "tea");
    append(&notes, 1, "milk");
    append(&notes, 2, "green");
    let version = notes.view().version();
    block_on(notes.tag("printed", version)).unwrap();
    block_on(notes.add_index("text")).unwrap();
    let mut edit = notes.edit();
    let [tea, milk] = [2, 3].map(|id| NodeId::new(id).unwrap());
    edit.put_attribute(tea, "text", "black tea").unwrap();
    edit.put_attribute(tea, "bytes", [0, 255]).unwrap();
    edit.move_to(milk, weald_forest::Where::Before(tea))
        .unwrap();
    edit.put_erasable(tea, "secret", b"hidden").unwrap();
    edit.put_erasable(tea, "shown", b"in sight").unwrap();
    block_on(edit.commit()).unwrap();
    block_on(notes.erase(tea, "secret")).unwrap();
    let old = block_on(forest.create("old")).unwrap();
    append(&old, 1, "only");
    block_on(forest.rename("old", "other")).unwrap();
}

#[test]
fn each_command_shows_what_is_there_also_while_it_is_open() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let forest = block_on(DiskForest::open(path)).unwrap();
    fill(&forest);
    look(path);
    drop(forest);
    let before = state(path);
    look(path);
    assert_eq!(state(path), before, "it only reads");
}

fn look(path: &Path) {
    look_at_nodes(path);
    look_at_history(path);
    look_at_all(path);
}

fn look_at_nodes(path: &Path) {
    let listed = lines(path, &["ls"]);
    let names: Vec<_> = listed
        .iter()
        .map(|line| line["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["notes", "other"]);
    assert_eq!(
        (&listed[0]["nodes"], &listed[0]["indexes"][0]),
        (&4.into(), &"text".into())
    );
    assert!(says(path, &["ls"]).starts_with("notes  4 nodes  "));
    assert_eq!(lines(path, &["ls", "oth"]).len(), 1);

    let drawn = says(path, &["tree", "notes"]);
    let rest = "└─ #2 bytes=0x00ff secret=erased (no later than ";
    assert!(
        drawn.starts_with(&format!("#1\n├─ #3 text=\"milk\"\n{rest}")),
        "{drawn}"
    );
    assert!(
        drawn.ends_with(
            " shown=\"in sight\" (erasable) text=\"black tea\"\n   └─ #4 text=\"green\"\n"
        )
    );
    let cut = says(path, &["tree", "notes", "--depth", "1"]);
    assert!(
        cut.ends_with("text=\"black tea\" (1 child below)\n"),
        "{cut}"
    );
    assert_eq!(says(path, &["tree", "notes", "4"]), "#4 text=\"green\"\n");
    let all = lines(path, &["tree", "notes", "-1,1"]);
    assert_eq!(
        (all.len(), &all[1]["depth"], &all[1]["node"]),
        (2, &1.into(), &4.into())
    );

    let shown = lines(path, &["show", "notes", "2"]).remove(0);
    assert_eq!(shown["attributes"]["shown"]["erasable"], "in sight");
    assert_eq!(shown["attributes"]["bytes"]["hex"], "00ff");
    let erased = shown["attributes"]["secret"]["erased"].as_str().unwrap();
    assert!(erased.parse::<u64>().unwrap() > 1_700_000_000, "{erased}");
    assert_eq!(
        (&shown["path"], &shown["parent"]),
        (&"-1,1".into(), &1.into())
    );
    assert!(says(path, &["show", "notes", "-1,1"]).contains("\"text\"    \"black tea\"\n"));
}

fn look_at_history(path: &Path) {
    let listed = lines(path, &["ls"]);
    let tagged = listed[0]["tags"]["printed"].as_str().unwrap();
    let log = lines(path, &["log"]);
    assert_eq!(log.len(), 12);
    assert_eq!(log[11]["changes"], Json::Array(Vec::new()), "the opening");
    assert!(says(path, &["log"]).ends_with("  the forest was opened\n"));
    assert_eq!(log[0]["changes"][0]["change"]["rename"], "other");
    assert_eq!(log[0]["changes"][0]["tree"], "old");
    assert_eq!(lines(path, &["log", "other"]).len(), 3);
    assert_eq!(lines(path, &["log", "notes", "-n", "2"]).len(), 2);
    assert_eq!(lines(path, &["log", "notes", "-n", "0"]).len(), 8);
    assert_eq!(lines(path, &["log", "notes", "--node", "2"]).len(), 2);
    let text = says(path, &["log", "notes"]);
    let first = text.lines().last().unwrap();
    assert!(first.ends_with("  create notes, 1 node"), "{first}");
    assert!(text.contains("notes: 1 added  \"by Ada\""), "{text}");
    assert!(text.contains("notes: 1 moved, 4 attributes"), "{text}");

    for from in [tagged, "tag:printed", tagged.split_once('.').unwrap().1] {
        let differs = lines(path, &["diff", "notes", from]);
        assert_eq!(differs.len(), 2, "{differs:?}");
        let text = &differs[0]["attributes"]["text"];
        assert_eq!(
            (&text["old"], &text["new"]),
            (&"tea".into(), &"black tea".into())
        );
        assert_eq!(differs[1]["moved_from"], "-1,1");
        let was = says(path, &["tree", "notes", "--at", from]);
        assert_eq!(
            was,
            "#1\n├─ #2 text=\"tea\"\n│  └─ #4 text=\"green\"\n└─ #3 text=\"milk\"\n"
        );
    }
    let text = says(path, &["diff", "notes", tagged]);
    assert!(text.contains("~ -1,0 #3 moved from -1,1\n"), "{text}");
    assert!(text.contains(" text: \"tea\" → \"black tea\""), "{text}");
    assert_eq!(says(path, &["diff", "notes", tagged, tagged]), "");

    assert_eq!(lines(path, &["at", tagged]).len(), 1);
    let oldest = log[10]["version"].as_str().unwrap();
    assert_eq!(says(path, &["at", oldest, "notes"]), "#1\n");
    // By the name that it has now, at a time when it had another one.
    let version = log[1]["version"].as_str().unwrap();
    assert_eq!(
        says(path, &["at", version, "other"]),
        "#1\n└─ #2 text=\"only\"\n"
    );
    assert_eq!(lines(path, &["at", version])[1]["name"], "old");
    assert_eq!(lines(path, &["at", "2999-01-01"]).len(), 2);
}

fn look_at_all(path: &Path) {
    let found = lines(path, &["find", "notes", "text^=g"]);
    let all = ["find", "notes", "text^=g", "-n", "0"];
    assert_eq!(lines(path, &all), found, "as `log -n 0`");
    assert_eq!((found.len(), &found[0]["node"]), (1, &4.into()));
    assert_eq!(
        says(path, &["find", "notes", "text=milk"]),
        "-1,0  #3 text=\"milk\"\n"
    );
    let was = lines(path, &["find", "notes", "text=tea", "--at", "tag:printed"]);
    assert_eq!(was[0]["node"], 2);

    assert_eq!(lines(path, &["check"])[0]["commits"], 11);
    assert!(says(path, &["check"]).starts_with("The forest is sound: 11 commits "));
    let stats = lines(path, &["stats"]).remove(0);
    assert_eq!((&stats["trees"], &stats["nodes"]), (&2.into(), &6.into()));
    assert!(says(path, &["stats"]).starts_with("trees        2\n"));
}

#[test]
fn what_is_exported_is_imported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let (first, second) = (path.join("first"), path.join("second"));
    let forest = block_on(DiskForest::open(&first)).unwrap();
    fill(&forest);
    let one = says(&first, &["export", "other"]);
    let all = says(&first, &["export"]);
    assert_eq!(all.lines().count(), 2);

    let (code, out, err) = weald(&second, &["import", "one"], &one);
    assert_eq!((code, out.as_str()), (4, ""));
    assert!(err.contains("add --create") && !second.exists(), "{err}");
    let (code, out, err) = weald(&second, &["import", "one", "--create"], &one);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("one: 2 nodes, version "), "{out}");
    assert_eq!(says(&second, &["export", "one"]), one);
    let file = path.join("all");
    fs::write(&file, &all).unwrap();
    let imported = lines(&second, &["import", "--from", file.to_str().unwrap()]);
    assert_eq!(imported.len(), 2);
    assert_eq!(says(&second, &["export", "other"]), one);
    let document = r#"{"a":[1,true,null],"b":"text"}"#;
    let (code, _, err) = weald(&second, &["import", "--document", "json"], document);
    assert_eq!((code, err.as_str()), (0, ""));
    let printed = says(&second, &["export", "json", "--document"]);
    assert_eq!(printed.trim_end(), document);
    let document = "<?xml version=\"1.0\"?><a b=\"1\">text<!-- c --></a>";
    let (code, _, err) = weald(&second, &["import", "--xml", "xml"], document);
    assert_eq!((code, err.as_str()), (0, ""));
    let printed = says(&second, &["export", "xml", "--xml"]);
    assert_eq!(printed.trim_end(), document);
    let (code, _, err) = weald(&second, &["export", "json", "--xml"], "");
    assert_eq!(code, 1);
    assert!(err.contains("without --xml"), "{err}");
    let before = state(&second);

    // What is refused changes nothing.
    for (words, input, code, says) in [
        (&["import", "one"][..], &*one, 1, "already"),
        (&["import"], &all, 1, "already"),
        (
            &["import", "new"],
            "{\"children\":[}",
            1,
            "nothing was imported",
        ),
        (
            &["import", "--xml", "new"],
            "<a>",
            1,
            "the end of an element",
        ),
        (&["import"], "{}", 1, "line 1"),
        (&["import", "new", "--from", "/nowhere"], "", 1, "/nowhere"),
    ] {
        let (ended, out, err) = weald(&second, words, input);
        assert_eq!((ended, out.as_str()), (code, ""), "{words:?} {err}");
        assert!(err.contains(says), "{err}");
    }
    assert_eq!(lines(&second, &["ls"]).len(), 5);
    assert_eq!(state(&second), before);

    // Somebody else writes.
    let (code, out, err) = weald(&first, &["import", "--create", "new"], &one);
    assert_eq!((code, out.as_str()), (5, ""), "{err}");
    assert!(
        err.contains(&format!("process {}", std::process::id())),
        "{err}"
    );
}

#[test]
fn what_is_not_there_is_told_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let (code, err) = fails(path, &["ls"]);
    assert!(
        code == 4 && err.contains("there is no forest here"),
        "{err}"
    );
    let (code, err) = fails(&path.join("missing"), &["check"]);
    assert!(code == 4 && err.contains("no such directory"), "{err}");
    let (code, err) = fails(Path::new("/etc/passwd"), &["ls"]);
    assert!(code == 4 && err.contains("it is a file"), "{err}");
    assert_eq!(
        fs::read_dir(path).unwrap().count(),
        0,
        "nothing was created"
    );

    let forest = block_on(DiskForest::open(path)).unwrap();
    fill(&forest);
    for (words, code, says) in [
        (&["tree", "note"][..], 4, "Did you mean `notes`?"),
        (&["show", "notes", "99"], 4, "there is no node 99"),
        (&["show", "notes", "-1,7"], 4, "leads nowhere"),
        (&["show", "notes", "x"], 2, "A node is a number or a path"),
        (&["tree", "notes", "--at", "tag:x"], 4, "It has: printed"),
        (&["tree", "notes", "--at", "x"], 2, "is no moment"),
        (&["at", "tag:printed"], 2, "add the name of the tree"),
        (&["at", "999999"], 4, "does not exist yet"),
        (
            &["at", "1970-01-02"],
            4,
            "the oldest commit that can be shown is",
        ),
        (&["diff", "other", "1"], 4, "no tree named `other`"),
        (
            &["find", "notes", "shown=in sight"],
            4,
            "no node has that. Erasable values are not searched.",
        ),
        (&["find", "notes", "text"], 2, "Write NAME=VALUE"),
        (&["log", "nothing"], 4, "no tree is named `nothing`"),
        (
            &["log", "notes", "--node", "99"],
            4,
            "no version that is kept",
        ),
    ] {
        let (ended, err) = fails(path, words);
        assert!(
            ended == code && err.contains(says),
            "{words:?}: {ended} {err}"
        );
    }
    let (code, _, err) = weald(path, &["fell"], "");
    assert!(code == 2 && err.contains("--help"), "{err}");
    let (code, out, _) = weald(path, &["--help"], "");
    assert!(code == 0 && out.contains("Exit codes:"));
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let directory = tempfile::tempdir().unwrap();
    let forest = block_on(DiskForest::open(directory.path())).unwrap();
    let many = block_on(forest.create("many")).unwrap();
    let mut edit = many.edit();
    let root = edit.root();
    // Much more than a pipe holds.
    for _ in 0..5000 {
        edit.append(root, Attributes::new().with("text", "x".repeat(50)))
            .unwrap();
    }
    block_on(edit.commit()).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_weald"))
        .arg("forest")
        .arg(directory.path())
        .args(["tree", "many", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    assert_eq!((status.code(), stderr), (Some(0), Vec::new()));
    assert!(line.starts_with('{'));
}

#[test]
fn damage_is_named_with_its_file_and_place_and_is_not_touched() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let forest = block_on(DiskForest::open(path)).unwrap();
    fill(&forest);
    block_on(forest.checkpoint()).unwrap();
    append(&forest.get("other").unwrap(), 1, "later");
    drop(forest);
    let files = state(path);
    let kinds = [".segment", ".checkpoint", ".keys"];
    for kind in kinds {
        let (name, content) = files
            .iter()
            .find(|(name, _)| name.to_str().unwrap().ends_with(kind))
            .unwrap();
        // In the head, and, where there is more, within what follows.
        for at in [1, 60] {
            let mut damaged = content.clone();
            damaged[at] ^= 1;
            fs::write(name, &damaged).unwrap();
            let (code, err) = fails(path, &["check"]);
            assert_eq!(code, 3, "{kind} at {at}: {err}");
            let file = name.file_name().unwrap().to_str().unwrap();
            assert!(err.contains(file), "{kind} at {at}: {err}");
            assert_eq!(fs::read(name).unwrap(), damaged);
        }
        fs::write(name, content).unwrap();
    }
    // A checkpoint that a later one follows.
    let (first, content) = files
        .iter()
        .find(|(name, _)| name.to_str().unwrap().ends_with(".checkpoint"))
        .unwrap();
    let forest = block_on(DiskForest::open(path)).unwrap();
    append(&forest.get("other").unwrap(), 1, "behind it");
    block_on(forest.checkpoint()).unwrap();
    drop(forest);
    for at in [1, content.len() / 2] {
        let mut damaged = content.clone();
        damaged[at] ^= 1;
        fs::write(first, &damaged).unwrap();
        let (code, err) = fails(path, &["check"]);
        let file = first.file_name().unwrap().to_str().unwrap();
        assert!(code == 3 && err.contains(file), "at {at}: {err}");
    }
    fs::write(first, content).unwrap();
    let files = state(path);
    // Before the checkpoint, where opening does not look.
    let (name, content) = &files[files
        .iter()
        .position(|it| it.0.to_str().unwrap().ends_with(".segment"))
        .unwrap()];
    let mut damaged = content.clone();
    damaged[150] ^= 1;
    fs::write(name, &damaged).unwrap();
    let (code, err) = fails(path, &["check"]);
    assert!(code == 3 && err.contains("byte 128"), "{err}");
    fs::write(name, content).unwrap();
    says(path, &["check"]);
    fs::remove_file(name).unwrap();
    let (code, err) = fails(path, &["tree", "notes"]);
    assert!(code == 3 || code == 4, "{err}");
}

#[test]
fn versions_that_are_no_longer_kept_are_made_again_until_they_are_trimmed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let settings = Settings::new().segment(4096);
    let journal = DiskJournal::open_on(Directory::create(path).unwrap(), settings).unwrap();
    let forest = DiskForest::recover(Forest::builder().keep(3), journal);
    let forest = block_on(forest).unwrap();
    let tree = block_on(forest.create("tree")).unwrap();
    let mut versions = Vec::new();
    for number in 0..1100 {
        append(&tree, 1, &number.to_string());
        versions.push(tree.view().version().to_string());
    }
    let nodes = |words: &[&str]| lines(path, words).remove(0)["nodes"].as_u64().unwrap();
    assert_eq!(nodes(&["at", &versions[4]]), 6);
    assert_eq!(
        says(path, &["tree", "tree", "--at", &versions[0]]),
        "#1\n└─ #2 text=\"0\"\n"
    );
    assert_eq!(
        lines(path, &["diff", "tree", &versions[9], &versions[1090]]).len(),
        1081
    );
    assert_eq!(lines(path, &["log", "-n", "0"]).len(), 1102);
    block_on(forest.checkpoint()).unwrap();
    let last = block_on(weald_forest::Journal::last(forest.journal()))
        .unwrap()
        .unwrap()
        .0;
    block_on(weald_forest::Journal::trim(forest.journal(), last)).unwrap();
    let (code, err) = fails(path, &["at", &versions[4]]);
    assert!(code == 4 && err.contains("trimmed"), "{err}");
    let stats = says(path, &["stats"]);
    assert!(
        stats.contains("\nindexes      0\nerasable     0\n"),
        "{stats}"
    );
    assert_eq!(nodes(&["ls"]), 1101);
    assert!(says(path, &["check"]).contains("behind what was trimmed"));
    assert!(says(path, &["log"]).ends_with("(Earlier commits were trimmed.)\n"));
}

#[test]
fn the_oldest_moment_that_is_named_can_be_shown() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let settings = Settings::new().segment(4096);
    let journal = DiskJournal::open_on(Directory::create(path).unwrap(), settings).unwrap();
    let forest = block_on(DiskForest::recover(Forest::builder(), journal)).unwrap();
    let tree = block_on(forest.create("tree")).unwrap();
    let fill =
        |from: u64| (from..from + 100).for_each(|number| _ = append(&tree, 1, &number.to_string()));
    fill(0);
    block_on(forest.checkpoint()).unwrap();
    let oldest = tree.view().version();
    let first = block_on(weald_forest::Journal::last(forest.journal()));
    fill(100);
    block_on(forest.checkpoint()).unwrap();
    block_on(weald_forest::Journal::trim(
        forest.journal(),
        first.unwrap().unwrap().0,
    ))
    .unwrap();
    fill(200);
    drop((tree, forest));
    let forest = block_on(DiskForest::open(path)).unwrap();
    let tree = forest.get("tree").unwrap();
    append(&tree, 1, "later");
    let newest = tree.view().version();
    let nodes = |word: &str| {
        lines(path, &["at", word]).remove(0)["nodes"]
            .as_u64()
            .unwrap()
    };
    for (word, due) in [
        (oldest.to_string(), 101),
        (oldest.number.to_string(), 101),
        ((oldest.number + 1).to_string(), 102),
        ((oldest.number + 150).to_string(), 251),
        (newest.to_string(), 302),
        (newest.number.to_string(), 302),
        // Between both openings: the last one before.
        ((newest.number - 5).to_string(), 301),
    ] {
        assert_eq!(nodes(&word), due, "{word}");
    }
    for number in [0, 3, oldest.number - 1] {
        let version = format!("{}.{number}", oldest.incarnation);
        for word in [number.to_string(), version, "1971-01-01".to_owned()] {
            let (code, err) = fails(path, &["at", &word]);
            let due = format!(
                "the oldest commit that can be shown is {oldest}; what was before was trimmed"
            );
            assert!(code == 4 && err.contains(&due), "{word}: {err}");
        }
    }
    for word in [
        (newest.number + 1).to_string(),
        format!("{}.{}", newest.incarnation, newest.number + 1),
    ] {
        let (code, err) = fails(path, &["at", &word]);
        let due = format!("does not exist yet; the newest is {newest}");
        assert!(code == 4 && err.contains(&due), "{word}: {err}");
    }
}

#[test]
fn a_master_key_is_asked_for_and_taken_from_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("forest");
    let [right, wrong] = ["right", "wrong"].map(|name| directory.path().join(name));
    for file in [&right, &wrong] {
        MasterKey::generate().unwrap().write(file).unwrap();
    }
    let settings = Settings::new().master_key(MasterKey::read(&right).unwrap());
    let journal = DiskJournal::open_on(Directory::create(&path).unwrap(), settings).unwrap();
    let forest = block_on(DiskForest::recover(Forest::builder(), journal)).unwrap();
    let tree = block_on(forest.create("tree")).unwrap();
    let mut edit = tree.edit();
    edit.put_erasable(edit.root(), "secret", "hidden").unwrap();
    block_on(edit.commit()).unwrap();
    let (code, err) = fails(&path, &["ls"]);
    assert!(code == 2 && err.contains("--master-key"), "{err}");
    let (code, err) = fails(&path, &["ls", "--master-key", wrong.to_str().unwrap()]);
    assert!(code == 2 && err.contains("another"), "{err}");
    let (code, err) = fails(&path, &["ls", "--master-key", "/dev/null"]);
    assert!(code == 2 && err.contains("64 hexadecimal digits"), "{err}");
    let shown = says(
        &path,
        &["show", "tree", "--master-key", right.to_str().unwrap()],
    );
    assert!(shown.contains("hidden"), "{shown}");
}
