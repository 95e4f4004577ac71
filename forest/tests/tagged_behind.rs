//! A record behind a checkpoint gives a tag to a version from before it. The checkpoint has this version, or the tag is
//! refused: otherwise the forest could not be opened again, or would show another version.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::task::Poll;

use tools::{ByHand, Random, Wait, commit, put, soak};
use weald_forest::journal::{Checkpoint, Journal};
use weald_forest::{
    CommitError, Committed, Forest, Level, MemoryJournal, RecoverError, Requested, TreeHandle,
    Version, VersionError,
};

/// What another program would find if this one ended now.
fn reopened(journal: &MemoryJournal, keep: usize) -> Result<Forest, RecoverError> {
    let journal = journal.copy();
    let builder = Forest::builder().keep(keep).journal(journal.clone());
    let mut opening = ByHand::new(builder.recover());
    if let Poll::Ready(opened) = opening.poll() {
        return opened;
    }
    journal.accept(1); // The record of the opening.
    journal.sync(Level::Durable);
    opening.ready()
}

/// The tags of a tree, with the versions and the nodes that they show.
fn tags(tree: &TreeHandle) -> Vec<String> {
    let of = |(tag, given): (String, Version)| {
        let root = tree.tagged(&tag).unwrap();
        let nodes: Vec<_> = root.tree().records().collect();
        format!("{tag} {given} {} {nodes:?}", root.version())
    };
    tree.tags().into_iter().map(of).collect()
}

/// What the root had as `n` in the version with this tag.
fn tagged(tree: &TreeHandle, tag: &str) -> String {
    let root = tree.tagged(tag).unwrap();
    root.tree().root().get_str("n").unwrap().to_owned()
}

#[test]
fn a_version_that_was_let_go_before_the_turn_of_its_tag_is_refused() {
    let journal = MemoryJournal::new();
    let forest = Forest::builder().keep(3).journal(journal.clone()).build();
    let tree = forest.create("t").wait().unwrap();
    let [early, old] = ["early", "old"].map(|value| commit(&tree, "n", value));
    tree.tag("early", early.version).wait().unwrap();
    let late = tree.tag("late", old.version);
    let of_tagged = tree.tag("again", early.version);
    (0..5).for_each(|n| _ = commit(&tree, "n", &n.to_string()));
    let checkpoint = forest.checkpoint().wait().unwrap();
    journal.put_checkpoint(checkpoint).wait().unwrap();
    let oldest = tree.versions()[0].version();
    let asked = old.version;
    let refused = CommitError::Version(VersionError::TooOld { asked, oldest });
    assert_eq!(late.wait(), Err(refused));
    // A tag still keeps this one.
    of_tagged.wait().unwrap();
    let again = reopened(&journal, 3).unwrap().get("t").unwrap();
    assert_eq!(tags(&again), tags(&tree));
    assert_eq!(again.tags().len(), 2);
}

/// The versions that the first checkpoint holds are not all before the second one.
#[test]
fn a_checkpoint_that_begins_beside_another_has_all_tagged_versions() {
    let journal = MemoryJournal::new();
    let forest = Forest::builder().keep(3).journal(journal.clone()).build();
    let tree = forest.create("t").wait().unwrap();
    commit(&tree, "n", "before");
    let first = forest.checkpoint().wait().unwrap();
    let old = commit(&tree, "n", "old");
    tree.tag("release", old.version).wait().unwrap();
    (0..6).for_each(|n| _ = commit(&tree, "n", &n.to_string()));
    let second = forest.checkpoint().wait().unwrap();
    journal.put_checkpoint(second).wait().unwrap();
    drop(first);
    tree.tag("again", old.version).wait().unwrap();
    for keep in [3, 1000] {
        let again = reopened(&journal, keep).unwrap().get("t").unwrap();
        assert_eq!(tags(&again), tags(&tree));
        assert_eq!(tagged(&again, "release"), "old");
        let shown = again.versions();
        assert_eq!(shown.len(), tree.versions().len());
    }
}

/// The first reading keeps what the second one will lack.
#[test]
fn a_version_that_only_a_moved_tag_had_is_found_for_another_tag() {
    let journal = MemoryJournal::new();
    let forest = Forest::builder().journal(journal.clone()).build();
    let tree = forest.create("t").wait().unwrap();
    let [old, _, bad] = ["old", "between", "bad"].map(|value| commit(&tree, "n", value));
    tree.tag("x", bad.version).wait().unwrap();
    tree.tag("x", old.version).wait().unwrap();
    commit(&tree, "n", "newest");
    tree.tag("y", bad.version).wait().unwrap();
    let again = reopened(&journal, 1).unwrap().get("t").unwrap();
    assert_eq!(tags(&again), tags(&tree));
}

fn begun(request: Requested<Committed>) -> ByHand<Result<Committed, CommitError>> {
    let mut request = ByHand::new(request);
    assert!(request.is_pending());
    request
}

/// Two trees, and a journal that answers when it is told to.
fn setup(keep: usize) -> (Forest, MemoryJournal, [TreeHandle; 2]) {
    let journal = MemoryJournal::by_hand();
    let builder = Forest::builder().keep(keep).level(Level::Accepted);
    let forest = builder.journal(journal.clone()).build();
    let trees = ["t", "other"].map(|name| {
        let mut creation = ByHand::new(forest.create(name));
        assert!(creation.is_pending());
        journal.accept(1);
        creation.ready().unwrap()
    });
    (forest, journal, trees)
}

/// Commits while nothing else is on its way.
fn write(journal: &MemoryJournal, tree: &TreeHandle, value: &str) -> Committed {
    let mut commit = ByHand::new(put(tree, "n", value).commit());
    assert!(commit.is_pending());
    journal.accept(1);
    commit.ready().unwrap()
}

/// The version is let go after its tag was prepared, and before the moment of the checkpoint.
#[test]
fn a_checkpoint_has_the_versions_of_tags_that_are_on_their_way() {
    let (forest, journal, [tree, other]) = setup(2);
    write(&journal, &tree, "old");
    let given = write(&journal, &other, "between"); // It is not a version of the tree.
    write(&journal, &tree, "newer");
    let mut commits = ["x", "y"].map(|name| {
        let mut commit = ByHand::new(put(&tree, name, "1").commit());
        assert!(commit.is_pending());
        commit
    });
    let mut tag = begun(tree.tag("release", given.version));
    journal.accept(2);
    commits
        .iter_mut()
        .for_each(|commit| _ = commit.ready().unwrap());
    let checkpoint = forest.checkpoint().wait().unwrap();
    journal.accept(1);
    tag.ready().unwrap();
    journal.put_checkpoint(checkpoint).wait().unwrap();
    let again = reopened(&journal, 2).unwrap().get("t").unwrap();
    assert_eq!(tagged(&again, "release"), "old");
    assert_eq!(tags(&again), tags(&tree));
}

/// Only a tag keeps the version, and another one takes it over.
#[test]
fn a_tag_takes_over_a_version_from_one_that_is_removed() {
    for is_between in [false, true] {
        let (forest, journal, [tree, _]) = setup(1);
        let old = write(&journal, &tree, "old");
        let mut early = begun(tree.tag("early", old.version));
        journal.accept(1);
        early.ready().unwrap();
        write(&journal, &tree, "newer");
        let put_checkpoint = || {
            let checkpoint = forest.checkpoint().wait().unwrap();
            journal.put_checkpoint(checkpoint).wait().unwrap();
        };
        if !is_between {
            put_checkpoint();
        }
        let mut requests = [
            begun(tree.untag("early")),
            begun(tree.tag("late", old.version)),
        ];
        journal.accept(1);
        requests[0].ready().unwrap();
        if is_between {
            put_checkpoint();
        }
        journal.accept(1);
        requests[1].ready().unwrap();
        let again = reopened(&journal, 1).unwrap().get("t").unwrap();
        assert_eq!(tagged(&again, "late"), "old");
        assert_eq!(tags(&again), tags(&tree));
    }
}

/// Until format 3 a checkpoint could lack the version. This one was made after others had pushed it out.
#[test]
fn a_checkpoint_of_an_older_format_shows_no_other_version_for_a_tag() {
    let journal = MemoryJournal::new();
    let forest = Forest::builder().keep(2).journal(journal.clone()).build();
    let tree = forest.create("t").wait().unwrap();
    let [early, old] = ["early", "old"].map(|value| commit(&tree, "n", value));
    tree.tag("early", early.version).wait().unwrap();
    commit(&tree, "n", "newest");
    let then = journal.copy();
    commit(&tree, "n", "lost");
    let checkpoint = forest.checkpoint().wait().unwrap();
    let blobs = checkpoint.blobs;
    // At this moment `early` and the two newest were there; they stand for the moment before.
    let at = then.last().wait().unwrap().unwrap().0;
    let mut bytes: Vec<u8> = checkpoint.pieces.flatten().collect();
    assert_eq!(bytes[1..3], [1, 3], "the frame `forest`, and the format");
    bytes[2] = 2;
    let pieces = Box::new([bytes].into_iter());
    let again = Forest::builder().keep(2).journal(then.clone());
    let again = again.recover().wait().unwrap();
    again
        .get("t")
        .unwrap()
        .tag("release", old.version)
        .wait()
        .unwrap();
    then.put_checkpoint(Checkpoint { at, blobs, pieces })
        .wait()
        .unwrap();
    let refused = reopened(&then, 1000).err();
    let (tree, version) = (tree.number(), old.version);
    assert_eq!(refused, Some(RecoverError::NoVersion { tree, version }));
}

/// What was asked for and is not answered.
#[derive(Default)]
struct Coming {
    requests: Vec<ByHand<Result<Committed, CommitError>>>,
    checkpoints: Vec<Checkpoint>,
}

fn go_on(
    (forest, journal): (&Forest, &MemoryJournal),
    tree: &TreeHandle,
    (coming, random): (&mut Coming, &mut Random),
) {
    let name = ["a", "b"][random.below(2)];
    match random.below(8) {
        0..3 => {
            let (name, value) = (random.below(100), random.below(1000));
            let edit = put(tree, &name.to_string(), &value.to_string());
            let commit = edit.commit();
            coming.requests.push(ByHand::new(commit));
        }
        3 => {
            let kept = tree.versions();
            let version = kept[random.below(kept.len())].version();
            coming.requests.push(ByHand::new(tree.tag(name, version)));
        }
        4 => {
            if let Some((_, given)) = tree.tags().first() {
                coming.requests.push(ByHand::new(tree.tag(name, *given)));
            }
        }
        5 => coming.requests.push(ByHand::new(tree.untag(name))),
        6 => journal.accept(random.below(4)),
        _ => match random.below(3) > 0 && !coming.checkpoints.is_empty() {
            true => {
                let any = random.below(coming.checkpoints.len());
                let checkpoint = coming.checkpoints.remove(any);
                // Of an earlier moment than that of the last one, it may be refused.
                let _ = journal.put_checkpoint(checkpoint).wait();
            }
            false => coming.checkpoints.extend(forest.checkpoint().wait().ok()),
        },
    }
    // One may be asked for long after it was begun.
    if random.below(3) > 0 {
        coming.requests.retain_mut(ByHand::is_pending);
    }
}

#[test]
fn tags_are_there_again_whatever_is_on_its_way_while_checkpoints_are_made() {
    soak(|random| {
        let keep = 1 + random.below(3);
        let (forest, journal, trees) = setup(keep);
        let mut coming = Coming::default();
        for _ in 0..60 {
            let tree = &trees[random.below(2)];
            go_on((&forest, &journal), tree, (&mut coming, random));
            if random.below(6) == 0 {
                let again = reopened(&journal, 1 + random.below(4)).unwrap();
                for tree in &trees {
                    assert_eq!(tags(&again.get(&tree.name()).unwrap()), tags(tree));
                }
            }
        }
    });
}
