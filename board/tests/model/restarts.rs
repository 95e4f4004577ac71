//! What another program finds, and what only the disk has.

use std::time::Duration;

use weald::forest::Forest;
use weald::forest::disk::{DiskForest, DiskJournal, Moment, Settings, SimulatedDisk};
use weald_board::model::{BoardError, Boards, State, Store, Token};

use super::support::*;

/// Far longer than anything takes that does not hang.
const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn another_program_finds_everything() {
    weald::block_on(async {
        let directory = tempfile::tempdir().unwrap();
        let boards = open(directory.path()).await;
        let tea = board(&boards, "Tea").await;
        let mut form = new(None, "one");
        form.token = Some(Token::new(&tea, &ada(), "form"));
        let id = boards.write(&tea, form.clone()).await.unwrap().id;
        let then = boards.board(&tea).unwrap().version();
        boards
            .edit(target(&tea, id, ada()), then, &says("two"))
            .await
            .unwrap();
        boards.close().await;

        let boards = open(directory.path()).await;
        assert_eq!(text(&boards, &tea, id).as_deref(), Some("two"));
        assert_eq!(
            boards
                .history(&tea, id, (None, 50))
                .await
                .unwrap()
                .states
                .len(),
            2
        );
        let past = boards.board_at(&tea, Moment::Version(then)).await.unwrap();
        assert_eq!(past.message(id).unwrap().post().unwrap().text(), "one");
        // The form is known, although its message says something else by now.
        let again = boards.write(&tea, form).await.unwrap();
        assert_eq!((again.id, again.is_repetition), (id, true));
        boards.undo(target(&tea, id, ada()), None).await.unwrap();
        assert_eq!(text(&boards, &tea, id).as_deref(), Some("one"));
    });
}

#[test]
fn what_memory_does_not_keep_is_read_from_the_disk() {
    weald::block_on(async {
        let directory = tempfile::tempdir().unwrap();
        let boards = open_forgetful(directory.path()).await;
        let tea = board(&boards, "Tea").await;
        let mut form = new(None, "0");
        form.token = Some(Token::new(&tea, &ada(), "form"));
        let id = boards.write(&tea, form.clone()).await.unwrap().id;
        let first = boards.board(&tea).unwrap();
        for number in 1..4 {
            let seen = boards.board(&tea).unwrap().version();
            boards
                .edit(target(&tea, id, ada()), seen, &says(&number.to_string()))
                .await
                .unwrap();
        }
        let again = boards.write(&tea, form).await.unwrap();
        assert_eq!((again.id, again.is_repetition), (id, true));
        let past = boards
            .board_at(&tea, Moment::Version(first.version()))
            .await
            .unwrap();
        assert_eq!(past.message(id).unwrap().post().unwrap().text(), "0");
        let past = boards
            .board_at(&tea, Moment::Time(first.time()))
            .await
            .unwrap();
        assert_eq!(past.message(id).unwrap().post().unwrap().text(), "0");
        let history = boards.history(&tea, id, (None, 50)).await.unwrap().states;
        let texts: Vec<_> = history
            .iter()
            .map(|it| it.post.as_ref().unwrap().text().to_owned())
            .collect();
        assert_eq!(texts, ["3", "2", "1", "0"]);
        let refused = boards
            .edit(target(&tea, id, ada()), first.version(), &says("4"))
            .await;
        assert!(matches!(refused, Err(BoardError::Stale(_))), "{refused:?}");

        boards.erase(target(&tea, id, ada())).await.unwrap();
        let past = boards
            .board_at(&tea, Moment::Version(first.version()))
            .await
            .unwrap();
        assert!(past.message(id).unwrap().post().is_none());
    });
}

#[test]
fn a_history_on_the_disk_is_read_in_parts_by_few_replays() {
    weald::block_on(async {
        let directory = tempfile::tempdir().unwrap();
        let store = forgetful(directory.path()).await;
        let Store::Disk(forest) = &store else {
            unreachable!()
        };
        let boards = Boards::of(store.clone()).await.unwrap();
        let tea = board(&boards, "Tea").await;
        let id = write(&boards, &tea, None, "0").await;
        for number in 1..40 {
            // A replay has no version from before a checkpoint.
            if number % 10 == 0 {
                forest.checkpoint().await.unwrap();
            }
            let seen = boards.board(&tea).unwrap().version();
            let said = says(&number.to_string());
            boards
                .edit(target(&tea, id, ada()), seen, &said)
                .await
                .unwrap();
        }
        let (mut from, mut texts) = (None, Vec::new());
        loop {
            let before = boards.replays();
            let history = boards.history(&tea, id, (from, 50)).await.unwrap();
            assert!(boards.replays() - before <= 2);
            let of = |it: &State| it.post.as_ref().unwrap().text().to_owned();
            texts.extend(history.states.iter().map(of));
            let Some(older) = history.older else { break };
            from = Some(older.version);
        }
        let all: Vec<_> = (0..40).rev().map(|number| number.to_string()).collect();
        assert_eq!(texts, all);
        assert!(boards.replays() <= 6, "{} replays", boards.replays());
        // The pages of one part are as long as they may be.
        let history = boards.history(&tea, id, (None, 3)).await.unwrap();
        assert_eq!((history.states.len(), history.older.is_some()), (3, true));
    });
}

#[test]
fn a_list_of_the_past_is_not_read_from_the_disk() {
    weald::block_on(async {
        let directory = tempfile::tempdir().unwrap();
        let boards = open_forgetful(directory.path()).await;
        let tea = board(&boards, "Tea").await;
        let then = boards.board(&tea).unwrap().version();
        write(&boards, &tea, None, "one").await;
        write(&boards, &tea, None, "two").await;
        board(&boards, "Milk").await;
        let before = boards.replays();
        let list = boards.list_at(then).unwrap();
        assert_eq!(boards.replays(), before);
        // Memory has only the newest version of one, and the other is younger.
        let found: Vec<_> = list.iter().map(|it| (&it.name, it.messages)).collect();
        assert_eq!(found, [(&tea, 2)]);
    });
}

#[test]
fn a_stranger_has_nothing_read_from_the_disk() {
    weald::block_on(async {
        let directory = tempfile::tempdir().unwrap();
        let boards = open_forgetful(directory.path()).await;
        let tea = board(&boards, "Tea").await;
        let id = write(&boards, &tea, None, "one").await;
        let then = boards.board(&tea).unwrap().version();
        boards
            .edit(target(&tea, id, ada()), then, &says("two"))
            .await
            .unwrap();
        write(&boards, &tea, None, "another").await;
        let before = boards.replays();
        let alans = target(&tea, id, alan());
        let edited = boards.edit(alans, then, &says("mine")).await;
        assert!(matches!(edited, Err(BoardError::NotYours)), "{edited:?}");
        let undone = boards.undo(alans, None).await;
        assert!(matches!(undone, Err(BoardError::NotYours)), "{undone:?}");
        assert_eq!(boards.replays(), before);
    });
}

#[test]
fn what_an_import_left_does_not_keep_the_boards_of_a_full_disk_closed() {
    weald::block_on(async {
        let disk = SimulatedDisk::new();
        let settings = Settings::new().segment(64 << 10).checkpoint_after(None);
        let journal = DiskJournal::open_on(disk.clone(), settings).unwrap();
        let forest = DiskForest::recover(Forest::builder(), journal)
            .await
            .unwrap();
        for number in 0..50 {
            forest.create(&format!("import/{number}")).await.unwrap();
        }
        let other = forest.create("other").await.unwrap();
        disk.set_room(Some(disk.used()));
        // Room that was prepared before the disk was full is used up first.
        loop {
            let mut edit = other.edit();
            edit.put_attribute(edit.root(), "a", b"b").unwrap();
            if edit.commit().await.is_err() {
                break;
            }
        }
        let boards = Boards::of(Store::Disk(forest.clone())).await.unwrap();
        assert!(!boards.takes_commits());
        assert!(!forest.list_prefix("import/").is_empty());
        disk.set_room(None);
        // Nobody has asked whether there is room.
        board(&boards, "Tea").await;
        assert!(boards.takes_commits());
        let forgotten = weald::timeout(MINUTE, async {
            while !forest.list_prefix("import/").is_empty() {
                weald::yield_now().await;
            }
        });
        forgotten.await.expect("what was left is deleted");
        assert!(boards.would_take_commits().await);
    });
}
