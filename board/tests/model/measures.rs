//! What moderators do to a board as a whole, and what happens if they do it twice.

use std::future::{Future, poll_fn};
use std::task::Poll;

use weald::forest::disk::{DiskForest, Moment};
use weald::forest::{Sortable, Value, Version};
use weald_board::model::{BoardError, BoardName, Boards, By, Measure, Store};

use super::support::*;

pub(super) const BY: By<'_> = By {
    who: "Grace",
    why: "the law",
    token: None,
};

fn names(boards: &Boards) -> Vec<String> {
    boards.list().iter().map(|it| it.name.to_string()).collect()
}

#[test]
fn a_deleted_board_is_there_for_nobody_until_it_is_restored() {
    weald::block_on(on_both(async |boards| {
        let tea = board(&boards, "Tea").await;
        let id = write(&boards, &tea, None, "one").await;
        let then = boards.board(&tea).unwrap().version();
        let mut follow = boards.follow(&tea, None).await.unwrap();
        let deleted = boards.moderate_board(&tea, Measure::Delete, BY).await;
        assert_eq!(follow.next().await.unwrap().version, deleted.unwrap());
        assert_eq!(names(&boards), [""; 0]);
        let at = boards.board_at(&tea, Moment::Version(then)).await;
        let answered = boards.write(&tea, new(Some(id), "two")).await;
        for refused in [
            boards.board(&tea).err(),
            at.err(),
            answered.err(),
            boards.follow(&tea, None).await.err(),
            boards.newest(&tea).err(),
            boards
                .edit(target(&tea, id, ada()), then, &says("x"))
                .await
                .err(),
            boards.erase(target(&tea, id, ada())).await.err(),
        ] {
            assert!(
                matches!(refused, Some(BoardError::BoardGone)),
                "{refused:?}"
            );
        }
        let taken = boards.create("Tea", "", None).await;
        assert!(matches!(taken, Err(BoardError::BoardTaken(_))), "{taken:?}");
        // What the law demands is also done to messages that nobody sees.
        let erased = boards.moderate((&tea, id), Measure::Erase, BY).await;
        assert!(erased.is_ok(), "{erased:?}");

        boards
            .moderate_board(&tea, Measure::Restore, BY)
            .await
            .unwrap();
        assert_eq!(names(&boards), ["tea"]);
        assert_eq!(boards.board(&tea).unwrap().title(), "Tea");
        write(&boards, &tea, None, "three").await;
        let (log, _) = boards.audit(1).unwrap();
        let log: Vec<_> = log
            .iter()
            .map(|entry| (entry.measure.unwrap(), entry.message, entry.board.as_str()))
            .collect();
        assert_eq!(
            log,
            [
                (Measure::Restore, None, "tea"),
                (Measure::Erase, Some(id.get()), "tea"),
                (Measure::Delete, None, "tea"),
            ]
        );
    }));
}

#[test]
fn what_an_erased_board_was_called_is_in_no_version_and_not_on_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    weald::block_on(async {
        let boards = open(directory.path()).await;
        let about = "nobody but zzaboutzz";
        let created = boards.create("Zzinsultzz the First", about, None);
        let insult = created.await.unwrap();
        write(&boards, &insult, None, "one").await;
        let then = boards.board(&insult).unwrap().version();
        let id = boards.board(&insult).unwrap().id().to_owned();
        let now = boards.board(&insult).unwrap();
        assert_eq!(boards.search(&now, "one", 1).await.unwrap().0.len(), 1);
        for name in [insult.clone(), only(&boards)] {
            // The second time it has its other address.
            let name = if boards.board(&name).is_ok() {
                name
            } else {
                only(&boards)
            };
            boards
                .moderate_board(&name, Measure::Erase, BY)
                .await
                .unwrap();
        }
        is_erased(&boards, &insult, (then, &id)).await;
        boards.close().await;
        drop(boards);
        let boards = open(directory.path()).await;
        is_erased(&boards, &insult, (then, &id)).await;
        boards.close().await;
    });
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path())
            .unwrap()
            .to_ascii_lowercase();
        for word in [&b"zzinsultzz"[..], b"zzaboutzz"] {
            assert!(!bytes.windows(word.len()).any(|it| it == word));
        }
    }
}

async fn is_erased(boards: &Boards, insult: &BoardName, (then, id): (Version, &str)) {
    let name = only(boards);
    let gone = boards.board(insult);
    assert!(matches!(gone, Err(BoardError::NoBoard(_))), "{gone:?}");
    let now = boards.board(&name).unwrap();
    let at = boards.board_at(&name, Moment::Version(then)).await.unwrap();
    for board in [&now, &at] {
        assert_eq!((board.title(), board.about()), ("Erased title", ""));
        assert_eq!(board.info().messages, 1);
    }
    assert_eq!(now.id(), id);
    assert_eq!(boards.search(&now, "one", 1).await.unwrap().0.len(), 1);
    for entry in boards.audit(1).unwrap().0 {
        let told = (entry.board, entry.outcome.as_deref());
        assert_eq!(told, (name.to_string(), Some("done")));
    }
}

fn only(boards: &Boards) -> BoardName {
    let [name] = &names(boards)[..] else {
        panic!("there is one board");
    };
    name.parse().unwrap()
}

/// The measures of the log, the newest first, and their outcomes.
pub(super) fn log(boards: &Boards) -> Vec<(Measure, Option<String>)> {
    let (log, _) = boards.audit(1).unwrap();
    log.into_iter()
        .map(|entry| (entry.measure.unwrap(), entry.outcome))
        .collect()
}

#[test]
fn a_measure_that_is_sent_twice_is_taken_once() {
    weald::block_on(on_both(async |boards| {
        let tea = board(&boards, "Tea").await;
        let id = write(&boards, &tea, None, "one").await;
        let with = |token| By {
            token: Some(token),
            ..BY
        };
        let taking: Vec<_> = (0..8)
            .map(|_| {
                let (boards, tea) = (boards.clone(), tea.clone());
                let by = with("one");
                weald::spawn(async move { boards.moderate((&tea, id), Measure::Delete, by).await })
            })
            .collect();
        let mut versions = Vec::new();
        for taken in taking {
            let version = taken.await.unwrap().unwrap();
            versions.push(version);
            let then = boards.board_at(&tea, Moment::Version(version)).await;
            assert!(then.unwrap().message(id).unwrap().post().is_none());
        }
        let done = |measure| (measure, Some("done".to_owned()));
        assert_eq!(log(&boards), [done(Measure::Delete)]);

        // What was done once is not done again, whatever has happened since.
        let restored = boards.moderate((&tea, id), Measure::Restore, BY).await;
        restored.unwrap();
        let again = boards.moderate((&tea, id), Measure::Delete, with("one"));
        versions.push(again.await.unwrap());
        versions.dedup();
        assert_eq!(versions.len(), 1, "{versions:?}");
        assert!(
            boards
                .board(&tea)
                .unwrap()
                .message(id)
                .unwrap()
                .post()
                .is_some()
        );
        let other = By {
            why: "spam",
            ..with("one")
        };
        let other = boards.moderate((&tea, id), Measure::Delete, other).await;
        assert!(matches!(other, Err(BoardError::TokenUsed)), "{other:?}");
        // Another measure, another message and another person are something else.
        let erased = boards.moderate((&tea, id), Measure::Erase, with("one"));
        erased.await.unwrap();

        // Not even its address has to be there any more.
        for _ in 0..2 {
            let erased = boards.moderate_board(&tea, Measure::Erase, with("two"));
            erased.await.unwrap();
        }
        let unknown = boards.moderate_board(&tea, Measure::Erase, with("three"));
        assert!(matches!(unknown.await, Err(BoardError::NoBoard(_))));
        assert_eq!(
            log(&boards),
            [
                Measure::Erase,
                Measure::Erase,
                Measure::Restore,
                Measure::Delete
            ]
            .map(done)
        );
    }));
}

#[test]
fn a_measure_that_was_interrupted_is_taken_if_it_is_sent_again() {
    weald::block_on(async {
        let directory = tempfile::tempdir().unwrap();
        let boards = open(directory.path()).await;
        let tea = board(&boards, "Tea").await;
        let id = write(&boards, &tea, None, "one").await;
        let by = By {
            token: Some("one"),
            ..BY
        };
        // The entry is on its way to the disk when its sender goes away.
        let mut interrupted = Box::pin(boards.moderate((&tea, id), Measure::Delete, by));
        poll_fn(|cx| {
            assert!(interrupted.as_mut().poll(cx).is_pending());
            match log(&boards).is_empty() {
                true => Poll::Pending,
                false => Poll::Ready(()),
            }
        })
        .await;
        drop(interrupted);
        assert_eq!(log(&boards), [(Measure::Delete, None)]);
        boards
            .moderate((&tea, id), Measure::Delete, by)
            .await
            .unwrap();
        assert_eq!(log(&boards), [(Measure::Delete, Some("done".to_owned()))]);
        boards.close().await;
    });
}

/// Polls a measure until `is_so`, and then its sender goes away.
pub(super) async fn interrupt<T>(measure: impl Future<Output = T>, is_so: impl Fn() -> bool) {
    let mut measure = Box::pin(measure);
    poll_fn(|cx| {
        assert!(measure.as_mut().poll(cx).is_pending());
        match is_so() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
}

#[test]
fn an_erasure_of_a_board_that_was_interrupted_is_completed_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let reopen = async || {
        let forest = DiskForest::open(directory.path()).await.unwrap();
        let boards = Boards::of(Store::Disk(forest.clone())).await.unwrap();
        (forest, boards)
    };
    weald::block_on(async {
        let (forest, boards) = reopen().await;
        let tea = boards.create("Tea", "About tea", None).await.unwrap();
        let trees = forest.list_prefix("board/");
        let tree = forest.get(&trees[0]).unwrap();
        let is_erased = |name: &str| {
            let snapshot = tree.snapshot();
            let value = forest.value(snapshot.tree().root(), name);
            !matches!(value, Some(Value::Erasable(_)))
        };
        let by = By {
            token: Some("one"),
            ..BY
        };
        let erasing = boards.moderate_board(&tea, Measure::Erase, by);
        interrupt(erasing, || is_erased("address")).await;
        assert!(is_erased("title") && is_erased("about"));
        boards.close().await;
        drop((boards, tree, forest));

        let (_, boards) = reopen().await;
        assert_eq!(log(&boards), [(Measure::Erase, None)]);
        let erased = boards.moderate_board(&tea, Measure::Erase, by).await;
        let erased = erased.unwrap();
        assert_eq!(log(&boards), [(Measure::Erase, Some("done".to_owned()))]);
        let again = boards.moderate_board(&tea, Measure::Erase, by).await;
        assert_eq!(again.unwrap(), erased);
        boards.close().await;
    });
}

#[test]
fn the_entry_of_an_import_names_its_board_only_with_its_outcome() {
    let directory = tempfile::tempdir().unwrap();
    weald::block_on(async {
        let boards = open(directory.path()).await;
        let arrival = boards.arrival(&"tea".parse().unwrap(), ("Tea", "")).await;
        let importing = arrival.unwrap().finish_by(BY);
        let entry = || boards.audit(1).unwrap().0.pop();
        interrupt(importing, || {
            entry().is_some_and(|entry| !entry.board.is_empty())
        })
        .await;
        let entry = entry().unwrap();
        let told = (entry.board.as_str(), entry.outcome.as_deref());
        assert_eq!(told, ("tea", Some("done")));
        boards.close().await;
    });
}

#[test]
fn an_address_that_was_erased_is_free_again() {
    weald::block_on(on_both(async |boards| {
        let tea = board(&boards, "Tea").await;
        boards
            .moderate_board(&tea, Measure::Erase, BY)
            .await
            .unwrap();
        assert_eq!(board(&boards, "Tea").await, tea);
        assert_eq!(boards.board(&tea).unwrap().title(), "Tea");
        assert_eq!(boards.list().len(), 2);
    }));
}

/// A board whose tree has its address as its name, and its title where it cannot be erased.
#[test]
fn a_board_of_an_older_program_is_read_and_completed() {
    let directory = tempfile::tempdir().unwrap();
    weald::block_on(async {
        let forest = DiskForest::open(directory.path()).await.unwrap();
        let tree = forest.create("board/tea").await.unwrap();
        let mut edit = tree.edit();
        let root = edit.root();
        edit.put_attribute(root, "title", "Tea").unwrap();
        let time = std::time::SystemTime::now().to_sortable();
        let attributes = weald::forest::Attributes::new().with("time", time);
        edit.append(root, attributes).unwrap();
        edit.commit().await.unwrap();
        let boards = Boards::of(Store::Disk(forest)).await.unwrap();
        let tea: BoardName = "tea".parse().unwrap();
        let board = boards.board(&tea).unwrap();
        assert_eq!((board.title(), board.id().len()), ("Tea", 32));
        assert_eq!(board.latest(10).len(), 1, "it has its index");
        let id = board.id().to_owned();
        let erased = boards.moderate_board(&tea, Measure::Erase, BY).await;
        assert!(matches!(erased, Err(BoardError::StaysOnDisk)), "{erased:?}");
        let board = boards.board(&tea).unwrap();
        assert_eq!((board.title(), board.id()), ("Erased title", id.as_str()));
        let log = boards.audit(1).unwrap().0;
        assert!(log[0].outcome.as_ref().unwrap().contains("still have it"));
    });
}

#[test]
fn two_who_create_the_same_board_at_once_make_one() {
    weald::block_on(on_both(async |boards| {
        let creators: Vec<_> = (0..8)
            .map(|_| {
                let boards = boards.clone();
                weald::spawn(async move { boards.create("Tea", "", None).await })
            })
            .collect();
        let mut made = 0;
        for creator in creators {
            match creator.await.unwrap() {
                Ok(_) => made += 1,
                Err(error) => assert!(matches!(error, BoardError::BoardTaken(_)), "{error}"),
            }
        }
        assert_eq!((made, names(&boards)), (1, vec!["tea".to_owned()]));
    }));
}
