//! The stages of a commit: accepted in order, visible in order, durable. Also the fate of commits that the journal
//! refuses, or does not know, after others were built on them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/replay.rs"]
mod replay;
#[path = "support/tools.rs"]
mod tools;

use std::collections::BTreeMap;

use proptest::prelude::*;
use replay::Replayed;
use tools::{ByHand, Wait, commit, put, value_of};
use weald_forest::journal::{Journal, Position};
use weald_forest::{
    AppendError, Attributes, Commit, CommitError, CommitId, Committed, DurableError, Forest, Level,
    MemoryJournal, Path, Since, TreeHandle, Version, VersionError, WatchEnd,
};

type Committing = ByHand<Result<Committed, CommitError>>;

/// A forest whose journal answers when it is told to, with trees. Its commits are acknowledged when they are accepted.
fn setup<const N: usize>(names: [&str; N]) -> (Forest, MemoryJournal, [TreeHandle; N]) {
    let journal = MemoryJournal::by_hand();
    let forest = Forest::builder()
        .journal(journal.clone())
        .level(Level::Accepted)
        .build();
    let trees = names.map(|name| {
        let mut creation = ByHand::new(forest.create(name));
        assert!(creation.is_pending());
        journal.accept(1);
        creation.ready().unwrap()
    });
    (forest, journal, trees)
}

fn begun(commit: Commit) -> Committing {
    let mut commit = ByHand::new(commit);
    assert!(commit.is_pending());
    commit
}

fn write(tree: &TreeHandle, name: &str, value: &str) -> Commit {
    put(tree, name, value).commit()
}

fn both(trees: [&TreeHandle; 2], name: &str, value: &str) -> Commit {
    Commit::of(trees.map(|tree| put(tree, name, value))).unwrap()
}

#[test]
fn commits_to_several_trees_are_prepared_ahead_and_shown_in_order() {
    let (_forest, journal, [a, b]) = setup(["a", "b"]);
    let before = a.view().version();
    let mut first = begun(write(&a, "x", "1"));
    let mut second = begun(write(&b, "x", "1"));
    let mut third = begun(both([&a, &b], "y", "2"));
    let mut fourth = begun(write(&a, "z", "3"));
    assert_eq!(journal.waiting(), 4);
    // Nothing is visible, and nothing is known.
    assert_eq!(a.view().version(), before);
    let next = Version {
        number: b.view().version().number + 1,
        ..before
    };
    assert!(matches!(a.kept_at(next), Err(VersionError::Future { .. })));
    journal.accept(1);
    let first = first.ready().unwrap();
    assert!(second.is_pending() && third.is_pending());
    assert_eq!(a.kept_at(first.version).unwrap().version(), first.version);
    assert_eq!(
        (value_of(&a, "x").as_deref(), value_of(&b, "x")),
        (Some("1"), None)
    );
    journal.accept(2);
    let (second, third) = (second.ready().unwrap(), third.ready().unwrap());
    assert!(first.version < second.version && second.version < third.version);
    for tree in [&a, &b] {
        assert_eq!(tree.view().version(), third.version);
        assert_eq!(
            value_of(tree, "x").unwrap(),
            "1",
            "it was rebased to a head on its way"
        );
    }
    assert!(value_of(&a, "z").is_none() && fourth.is_pending());
    journal.accept(1);
    assert_eq!(
        fourth.ready().unwrap().version.number,
        third.version.number + 1
    );
}

/// That is final, and does not depend on the commit before.
#[test]
fn those_behind_the_first_that_a_journal_refuses_because_it_has_ended_are_told_so() {
    for ended in [AppendError::Fenced, AppendError::Poisoned] {
        let (_forest, journal, [a, b]) = setup(["a", "b"]);
        let all = [
            begun(write(&a, "x", "1").id(CommitId(7))),
            // Its refusal depends on the first.
            begun(write(&a, "x", "2").id(CommitId(7))),
            begun(write(&a, "y", "2")),
            begun(both([&a, &b], "w", "3")),
        ];
        journal.refuse(ended);
        for mut commit in all {
            assert_eq!(commit.ready(), Err(CommitError::Journal(ended)));
        }
    }
}

#[test]
fn a_commit_that_is_refused_takes_along_what_was_built_on_it() {
    let (forest, journal, [a, b]) = setup(["a", "b"]);
    let before = b.view().version();
    let mut first = begun(write(&a, "x", "1"));
    journal.accept(1);
    // The first is accepted, though nobody has looked yet; the next is refused.
    let mut others = [
        begun(write(&a, "y", "2")),
        begun(both([&a, &b], "w", "3")),
        begun(write(&b, "z", "4").id(CommitId(4))),
    ];
    let conflict = AppendError::Conflict {
        current: Position(9),
    };
    journal.refuse(conflict);
    assert_eq!(first.ready().unwrap().version.number, before.number + 1);
    assert_eq!(others[0].ready(), Err(CommitError::Journal(conflict)));
    for other in &mut others[1..] {
        assert_eq!(
            other.ready(),
            Err(CommitError::Journal(AppendError::Behind))
        );
    }
    assert_eq!((value_of(&a, "y"), value_of(&b, "z")), (None, None));
    assert_eq!(value_of(&a, "x").unwrap(), "1");
    assert_eq!(b.view().version(), before);
    // Nothing was used up: the number is free, and so is the id.
    let mut again = begun(write(&b, "z", "4").id(CommitId(4)));
    journal.accept(1);
    assert_eq!(again.ready().unwrap().version.number, before.number + 2);
    assert_eq!(forest.stats().commits, 4);
}

#[test]
fn names_on_their_way_are_taken() {
    let (forest, journal, [a]) = setup(["a"]);
    let mut rename = ByHand::new(forest.rename("a", "b"));
    let mut create = ByHand::new(forest.create("a"));
    let mut again = ByHand::new(forest.rename("b", "c"));
    assert!(rename.is_pending() && create.is_pending() && again.is_pending());
    // Nobody is told of what is not visible, nor refused for it.
    let mut taken = ByHand::new(forest.create("c"));
    let mut missing = ByHand::new(forest.delete("b"));
    assert!(taken.is_pending() && missing.is_pending());
    let mut delete = ByHand::new(forest.delete("c"));
    assert!(delete.is_pending());
    let mut late = begun(write(&a, "x", "1"));
    assert_eq!(
        (forest.list(), a.name(), a.is_deleted()),
        (vec!["a".into()], "a".into(), false)
    );
    journal.accept(1);
    rename.ready().unwrap();
    assert_eq!(forest.list(), ["b"]);
    journal.accept(2);
    let created = create.ready().unwrap();
    again.ready().unwrap();
    assert_eq!(forest.list(), ["a", "c"]);
    assert!(matches!(taken.ready(), Err(CommitError::Name(_))));
    assert!(matches!(missing.ready(), Err(CommitError::Name(_))));
    assert_ne!(created.number(), a.number());
    journal.refuse(AppendError::Full);
    assert_eq!(delete.ready(), Err(CommitError::Journal(AppendError::Full)));
    let behind = CommitError::Journal(AppendError::Behind);
    assert_eq!(late.ready(), Err(behind));
    let mut fine = begun(write(&a, "x", "1"));
    journal.accept(1);
    fine.ready().unwrap();
    assert_eq!(a.name(), "c");
}

#[test]
fn a_second_commit_with_the_same_id_waits_for_the_first() {
    let (_forest, journal, [a]) = setup(["a"]);
    let mut first = begun(write(&a, "x", "1").id(CommitId(7)));
    let mut second = begun(write(&a, "x", "1").id(CommitId(7)));
    let idle = a.edit();
    idle.attribute(idle.root(), "other").unwrap();
    let mut nothing = begun(idle.commit().id(CommitId(8)));
    assert_eq!(journal.waiting(), 1);
    journal.accept(1);
    let receipt = first.ready().unwrap();
    assert_eq!(second.ready().unwrap(), receipt);
    let idle = nothing.ready().unwrap();
    assert_eq!((idle.version, idle.id), (receipt.version, CommitId(8)));
}

#[test]
fn a_lost_answer_is_resolved_before_anything_else_is_appended() {
    for is_stored in [true, false] {
        let (_forest, journal, [a, b]) = setup(["a", "b"]);
        let mut lost = begun(write(&a, "x", "1"));
        journal.lose_answer(is_stored);
        let mut next = begun(write(&b, "x", "2"));
        match is_stored {
            true => assert!(lost.ready().is_ok()),
            false => assert_eq!(lost.ready(), Err(CommitError::Journal(AppendError::Lost))),
        }
        assert_eq!(value_of(&a, "x").is_some(), is_stored);
        journal.accept(1);
        next.ready().unwrap();
        let entries = journal.read(Position::default(), 100).wait().unwrap();
        let known = Replayed::of(&entries);
        known.check(&a);
        known.check(&b);
    }
}

#[test]
fn a_journal_that_cannot_tell_ends_the_commits_and_not_the_reads() {
    let (forest, journal, [a, b]) = setup(["a", "b"]);
    let mut unknown = begun(write(&a, "x", "1").id(CommitId(7)));
    let mut behind = begun(write(&b, "x", "1").id(CommitId(8)));
    journal.set_reachable(false);
    journal.lose_answer(true);
    assert_eq!(unknown.ready(), Err(CommitError::Unknown(CommitId(7))));
    assert_eq!(behind.ready(), Err(CommitError::Unknown(CommitId(8))));
    let refused = write(&b, "x", "2").wait();
    assert_eq!(refused, Err(CommitError::Journal(AppendError::Poisoned)));
    assert!(forest.create("c").wait().is_err());
    assert_eq!(
        (value_of(&a, "x"), forest.list()),
        (None, vec!["a".into(), "b".into()])
    );
}

#[test]
fn no_more_records_are_on_their_way_than_the_journal_takes() {
    let journal = MemoryJournal::by_hand().pipelined(2);
    let builder = Forest::builder().journal(journal.clone());
    let forest = builder.level(Level::Accepted).build();
    let mut creation = ByHand::new(forest.create("a"));
    assert!(creation.is_pending());
    journal.accept(1);
    let a = creation.ready().unwrap();
    let mut commits: Vec<_> = ["p", "q", "r", "s"]
        .map(|name| begun(write(&a, name, "v")))
        .into();
    assert_eq!(journal.waiting(), 2);
    // One that waits for room can be withdrawn.
    drop(commits.remove(2));
    for commit in &mut commits {
        assert!(commit.is_pending());
        journal.accept(1);
        commit.ready().unwrap();
    }
    assert_eq!(
        (value_of(&a, "r"), value_of(&a, "s").as_deref()),
        (None, Some("v"))
    );
}

#[test]
fn an_edit_that_was_dropped_while_it_was_on_its_way_is_still_made() {
    let (_forest, journal, [a]) = setup(["a"]);
    drop(begun(write(&a, "x", "1")));
    journal.accept(1);
    let mut next = begun(write(&a, "y", "2"));
    assert_eq!(value_of(&a, "x").unwrap(), "1");
    journal.accept(1);
    next.ready().unwrap();
}

#[test]
fn a_commit_is_acknowledged_at_the_level_it_asked_for() {
    let journal = MemoryJournal::synced_by_hand();
    let forest = Forest::builder().journal(journal.clone()).build();
    let mut creation = ByHand::new(forest.create("a"));
    assert!(creation.is_pending(), "the strongest level is usual");
    let a = forest.get("a").unwrap();
    journal.sync(Level::Durable);
    assert_eq!(creation.ready().unwrap().number(), a.number());
    let accepted = write(&a, "x", "1").level(Level::Accepted).wait().unwrap();
    let mut buffered = begun(write(&a, "y", "2").level(Level::Buffered));
    let mut durable = begun(write(&a, "z", "3"));
    assert_eq!(value_of(&a, "z").unwrap(), "3", "it is visible before");
    let mut waits = ByHand::new(forest.when_durable(accepted.version, Level::Durable));
    assert!(waits.is_pending());
    journal.sync(Level::Buffered);
    buffered.ready().unwrap();
    assert!(durable.is_pending() && waits.is_pending());
    journal.sync(Level::Durable);
    waits.ready().unwrap();
    let last = durable.ready().unwrap();
    forest
        .when_durable(last.version, Level::Durable)
        .wait()
        .unwrap();
    let ahead = Version {
        number: last.version.number + 1,
        ..last.version
    };
    let refused = forest.when_durable(ahead, Level::Durable).wait();
    assert!(matches!(
        refused,
        Err(DurableError::Version(VersionError::Future { .. }))
    ));
}

#[test]
fn a_level_that_nothing_reaches_is_refused() {
    let forest = Forest::new();
    let tree = forest.create("t").wait().unwrap();
    let refused = write(&tree, "x", "1").level(Level::Buffered).wait();
    let (asked, most) = (Level::Buffered, Level::Accepted);
    assert_eq!(refused, Err(CommitError::Level { asked, most }));
    assert_eq!(value_of(&tree, "x"), None);
    let made = commit(&tree, "x", "1").version;
    assert_eq!(forest.when_durable(made, Level::Accepted).wait(), Ok(()));
    let refused = forest.when_durable(made, Level::Durable).wait();
    assert_eq!(refused, Err(DurableError::Level { most }));
}

#[test]
fn what_is_visible_when_the_journal_fails_is_not_acknowledged() {
    let journal = MemoryJournal::synced_by_hand();
    let forest = Forest::builder().journal(journal.clone()).build();
    let mut creation = ByHand::new(forest.create("a"));
    assert!(creation.is_pending());
    journal.sync(Level::Durable);
    let a = creation.ready().unwrap();
    let mut watch = a.watch(&Path::default(), Since::Now).unwrap();
    let mut lost = begun(write(&a, "x", "1").id(CommitId(7)));
    let mut creation = ByHand::new(forest.create("b"));
    assert!(creation.is_pending());
    journal.fail();
    assert_eq!(lost.ready(), Err(CommitError::Unknown(CommitId(7))));
    assert!(matches!(creation.ready(), Err(CommitError::Unknown(_))));
    assert_eq!(watch.next().wait().unwrap_err(), WatchEnd::Unknown);
    let refused = write(&a, "x", "2").wait();
    assert_eq!(refused, Err(CommitError::Journal(AppendError::Poisoned)));
}

#[test]
fn a_watch_yields_what_has_reached_its_level_and_resumes_with_it() {
    let journal = MemoryJournal::synced_by_hand();
    let builder = Forest::builder().journal(journal.clone());
    let forest = builder.level(Level::Durable).build();
    let mut creation = ByHand::new(forest.create("a"));
    assert!(creation.is_pending());
    journal.sync(Level::Durable);
    let a = creation.ready().unwrap();
    let watch = || a.watch(&Path::default(), Since::Now).unwrap();
    let (mut durable, mut visible) = (watch(), watch().level(Level::Accepted));
    let made = write(&a, "x", "1").level(Level::Accepted).wait().unwrap();
    assert_eq!(visible.next().wait().unwrap().after.version(), made.version);
    let mut next = ByHand::new(async move { (durable.next().await, durable) });
    assert!(next.is_pending());
    journal.sync(Level::Durable);
    let (seen, durable) = next.ready();
    assert_eq!(seen.unwrap().after.version(), made.version);
    let last = durable.last().version();
    assert!(a.watch(&Path::default(), Since::Version(last)).is_ok());
}

/// What a medium and two writers may do.
#[derive(Clone, Debug)]
enum Step {
    /// A commit to the first tree, to the second, or to both; of many nodes, or of one attribute.
    Commit(u8, bool),
    Accept(u8),
    Refuse,
    Lose(bool),
    Sync,
    /// Polls the commit of this place.
    Poll(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0..3_u8, any::<bool>()).prop_map(|(trees, large)| Step::Commit(trees, large)),
        4 => (0..4_u8).prop_map(Step::Accept),
        1 => Just(Step::Refuse),
        1 => any::<bool>().prop_map(Step::Lose),
        2 => Just(Step::Sync),
        4 => any::<u8>().prop_map(Step::Poll),
    ];
    prop::collection::vec(step, 1..40)
}

/// The plain model: the values that were committed, and those on their way, oldest first.
#[derive(Default)]
struct Model {
    visible: [Vec<u32>; 2],
    on_their_way: Vec<(usize, [bool; 2])>,
    durable: usize,
    /// How many commits are visible, and the outcome of each commit by its place.
    shown: usize,
    outcomes: BTreeMap<usize, Result<usize, ()>>,
}

impl Model {
    fn accept(&mut self) {
        if self.on_their_way.is_empty() {
            return;
        }
        let (number, trees) = self.on_their_way.remove(0);
        for (tree, visible) in trees.iter().zip(&mut self.visible) {
            visible.extend(tree.then_some(u32::try_from(number).unwrap()));
        }
        self.shown += 1;
        self.outcomes.insert(number, Ok(self.shown));
    }

    fn refuse_all(&mut self) {
        for (number, _) in self.on_their_way.drain(..) {
            self.outcomes.insert(number, Err(()));
        }
    }
}

/// The numbers of the commits that a tree shows, in their order.
fn numbers(tree: &TreeHandle) -> Vec<u32> {
    let view = tree.view();
    let children = view.tree().root().children();
    let numbers = children.filter_map(|node| node.get("n"));
    numbers
        .map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap()))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn two_trees_and_a_slow_journal_do_what_the_model_does(steps in steps()) {
        let journal = MemoryJournal::by_hand();
        let forest = Forest::builder().journal(journal.clone()).build();
        let trees = ["a", "b"].map(|name| {
            let mut creation = ByHand::new(forest.create(name));
            assert!(creation.is_pending());
            journal.accept(1);
            assert!(creation.is_pending());
            journal.sync(Level::Durable);
            creation.ready().unwrap()
        });
        let first = trees[1].view().version().number;
        let (mut model, mut commits) = (Model::default(), Vec::new());
        for step in steps {
            match step {
                Step::Commit(which, is_large) => {
                    let number = u32::try_from(commits.len()).unwrap();
                    let chosen = [which != 1, which != 0];
                    let edits = trees.iter().zip(chosen).filter(|(_, is_chosen)| *is_chosen);
                    let edits = edits.map(|(tree, _)| {
                        let mut edit = tree.edit();
                        let root = edit.root();
                        let node = edit.append(root, Attributes::new().with("n", number.to_le_bytes()));
                        for _ in 0..if is_large { 100 } else { 0 } {
                            edit.append(node.clone().unwrap(), Attributes::new()).unwrap();
                        }
                        edit
                    });
                    let mut commit = ByHand::new(Commit::of(edits.collect::<Vec<_>>()).unwrap());
                    prop_assert!(commit.is_pending());
                    model.on_their_way.push((commits.len(), chosen));
                    commits.push(Some(commit));
                }
                Step::Accept(count) => {
                    journal.accept(count.into());
                    (0..count).for_each(|_| model.accept());
                }
                Step::Refuse => {
                    journal.refuse(AppendError::Full);
                    model.refuse_all();
                }
                Step::Lose(is_stored) => {
                    // The journal is asked for its outcome, and those behind it are as certain as before.
                    let waiting = journal.waiting();
                    journal.lose_answer(is_stored);
                    match is_stored {
                        true => model.accept(),
                        false if waiting > 0 => model.refuse_all(),
                        false => {}
                    }
                }
                Step::Sync => {
                    journal.sync(Level::Durable);
                    model.durable = model.shown;
                }
                Step::Poll(at) if !commits.is_empty() => {
                    let at = usize::from(at) % commits.len();
                    if let Some(commit) = &mut commits[at] {
                        let polled = commit.poll();
                        match model.outcomes.get(&at) {
                            Some(Ok(shown)) if *shown <= model.durable => {
                                let std::task::Poll::Ready(Ok(receipt)) = polled else {
                                    panic!("commit {at} is durable: {polled:?}")
                                };
                                prop_assert_eq!(receipt.version.number, first + *shown as u64);
                                commits[at] = None;
                            }
                            Some(Err(())) => {
                                prop_assert!(matches!(polled, std::task::Poll::Ready(Err(_))));
                                commits[at] = None;
                            }
                            _ => prop_assert!(polled.is_pending()),
                        }
                    }
                }
                Step::Poll(_) => {}
            }
            for (tree, visible) in trees.iter().zip(&model.visible) {
                prop_assert_eq!(&numbers(tree), visible);
            }
        }
        let entries = journal.read(Position::default(), 1000).wait().unwrap();
        let known = Replayed::of(&entries);
        trees.iter().for_each(|tree| known.check(tree));
    }
}

#[test]
fn an_erasure_is_acknowledged_when_it_is_durable_whatever_level_was_asked_for() {
    let journal = MemoryJournal::synced_by_hand();
    let builder = Forest::builder().journal(journal.clone());
    let forest = builder.level(Level::Accepted).build();
    let a = ByHand::new(forest.create("a")).ready().unwrap();
    let mut edit = a.edit();
    let root = edit.root();
    edit.put_erasable(root, "x", "secret").unwrap();
    edit.put_erasable(root, "y", "secret").unwrap();
    ByHand::new(edit.commit()).ready().unwrap();
    let mut usual = ByHand::new(a.erase(root, "x"));
    let mut asked = ByHand::new(a.erase(root, "y").level(Level::Buffered));
    for level in [Level::Accepted, Level::Buffered] {
        assert!(usual.is_pending() && asked.is_pending(), "{level:?}");
        journal.sync(level);
    }
    assert!(usual.is_pending() && asked.is_pending());
    journal.sync(Level::Durable);
    usual.ready().unwrap();
    asked.ready().unwrap();
}
