//! Updates of several trees: all of one moment, all or none, and with turns.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::sync::Arc;

use tools::{ByHand, ManualClock, Wait, commit, put, value_of};
use weald_forest::{
    AppendError, Commit, CommitError, CommitId, Edit, EditError, Forest, Level, MemoryJournal,
    Terms, TreeHandle, UpdateError, VersionError,
};

const ACCOUNTS: usize = 3;

fn setup() -> (Forest, Vec<TreeHandle>) {
    // Its time stands still, so no lease is revoked.
    let clock = Arc::new(ManualClock::default());
    let forest = Forest::builder().clock(clock).build();
    let accounts = (0..ACCOUNTS).map(|at| {
        let account = forest.create(&at.to_string()).wait().unwrap();
        commit(&account, "balance", "100");
        account
    });
    let accounts = accounts.collect();
    (forest, accounts)
}

fn balance(edit: &Edit) -> i64 {
    let value = edit.attribute(edit.root(), "balance").unwrap().unwrap();
    str::from_utf8(value).unwrap().parse().unwrap()
}

fn transfer(accounts: &mut [Edit], amount: i64) -> Result<(), EditError> {
    let [from, to] = accounts else {
        unreachable!("a transfer has two accounts")
    };
    let (left, right) = (balance(from) - amount, balance(to) + amount);
    from.put_attribute(from.root(), "balance", left.to_string())?;
    to.put_attribute(to.root(), "balance", right.to_string())
}

fn sum(forest: &Forest, accounts: &[TreeHandle]) -> i64 {
    let all: Vec<_> = accounts.iter().collect();
    let all = forest.snapshot_all(&all).unwrap();
    let balances = all.iter().map(|account| {
        let balance = account.tree().root().get_str("balance").unwrap();
        balance.parse::<i64>().unwrap()
    });
    balances.sum()
}

#[test]
fn nothing_is_lost_between_many_at_once() {
    let (forest, accounts) = setup();
    std::thread::scope(|scope| {
        for thread in 0..4_usize {
            let (forest, accounts) = (&forest, &accounts);
            scope.spawn(move || {
                for round in 0..50_usize {
                    let from = (thread + round) % ACCOUNTS;
                    let to = (from + 1 + round % 2) % ACCOUNTS;
                    let both = [&accounts[from], &accounts[to]];
                    let update = forest.update_all(&both, Terms::new(), |both| {
                        transfer(both, round.try_into().unwrap())
                    });
                    update.wait().unwrap();
                    assert_eq!(sum(forest, accounts), 300);
                }
            });
        }
    });
    // Each thread and round made one commit, besides those of the setup.
    assert_eq!(forest.stats().commits, 2 * ACCOUNTS as u64 + 200);
}

#[test]
fn after_lost_races_it_has_the_turn_of_all_its_trees() {
    let (forest, accounts) = setup();
    let both = [&accounts[1], &accounts[0]];
    let (mut runs, mut waiting) = (0, Vec::new());
    let update = forest.update_all(&both, Terms::new().id(CommitId(5)), |edits| {
        runs += 1;
        let value = runs.to_string();
        let elsewhere = |tree: &TreeHandle| {
            std::thread::scope(|scope| {
                let put = || {
                    let mut commit = ByHand::new(put(tree, "balance", &value).blind().commit());
                    commit.is_pending().then_some(commit)
                };
                scope.spawn(put).join().unwrap()
            })
        };
        for tree in both {
            waiting.extend(elsewhere(tree));
        }
        transfer(edits, 7)
    });
    let ((), receipt) = update.wait().unwrap();
    assert_eq!((runs, waiting.len(), receipt.id), (4, 2, CommitId(5)));
    let last = waiting
        .into_iter()
        .map(|mut late| late.ready().unwrap().version);
    assert!(last.min().unwrap() > receipt.version);
    // The receipt leads to what the commit did.
    let seen = accounts[1].seen(receipt.version).unwrap();
    assert_eq!(seen.before.tree().root().get_str("balance"), Some("3"));
    assert_eq!(seen.after.tree().root().get_str("balance"), Some("-4"));
    assert_eq!(seen.after.version(), receipt.version);
}

#[test]
fn what_is_wrong_is_refused() {
    let (forest, accounts) = setup();
    let twice = [&accounts[0], &accounts[0]];
    let update = forest.update_all(&twice, Terms::new(), |_| Ok::<_, EditError>(()));
    let refused = update.wait().unwrap_err();
    assert_eq!(
        refused,
        UpdateError::Commit(CommitError::TreeTwice("0".into()))
    );
    let update = forest.update_all(&[], Terms::new(), |_| -> Result<(), EditError> {
        unreachable!("there is nothing to change")
    });
    let refused = update.wait().unwrap_err();
    assert_eq!(refused, UpdateError::Commit(CommitError::NoEdits));
    let (_, others) = setup();
    let update = forest.update_all(&[&others[0]], Terms::new(), |_| Ok::<_, EditError>(()));
    let refused = update.wait().unwrap_err();
    assert_eq!(
        refused,
        UpdateError::Commit(CommitError::OtherForest("0".into()))
    );
    // A closure that gives up leaves no trace.
    let update = forest.update_all(&[&accounts[0], &accounts[1]], Terms::new(), |edits| {
        transfer(edits, 5).unwrap();
        Err::<(), _>("no")
    });
    assert_eq!(update.wait().unwrap_err(), UpdateError::GivenUp("no"));
    assert_eq!(value_of(&accounts[0], "balance").as_deref(), Some("100"));
    let first = accounts[0].versions()[0].version();
    let seen = accounts[0].seen(first);
    assert!(matches!(seen, Err(VersionError::NotCreated { .. })));
}

/// One of the trees may be younger than the newest version of another.
#[test]
fn an_update_that_finds_nothing_to_change_can_be_repeated() {
    let forest = Forest::new();
    let [a, b] = ["a", "b"].map(|name| forest.create(name).wait().unwrap());
    let idle = || {
        let nothing = |_: &mut [Edit]| Ok::<_, EditError>(());
        let terms = Terms::new().id(CommitId(7));
        forest.update_all(&[&a, &b], terms, nothing).wait()
    };
    let first = idle().unwrap();
    assert_eq!(first.1.version, b.view().version());
    assert_eq!(idle(), Ok(first));
    commit(&b, "k", "v");
    assert_eq!(idle(), Ok(first));
}

/// Nobody learns of a version that never comes to be.
#[test]
fn that_there_is_nothing_to_change_depends_on_the_newest_version_of_each_tree() {
    let journal = MemoryJournal::by_hand();
    let builder = Forest::builder().journal(journal.clone());
    let forest = builder.level(Level::Accepted).build();
    let [a, b] = ["a", "b"].map(|name| {
        let mut creation = ByHand::new(forest.create(name));
        assert!(creation.is_pending());
        journal.accept(1);
        creation.ready().unwrap()
    });
    let mut coming = ByHand::new(put(&b, "k", "v").commit());
    assert!(coming.is_pending());
    let mut idle = ByHand::new(Commit::of([a.edit(), b.edit()]).unwrap());
    assert!(idle.is_pending());
    journal.refuse(AppendError::Full);
    assert!(coming.ready().is_err());
    assert!(matches!(idle.ready(), Err(CommitError::Journal(_))));
}
