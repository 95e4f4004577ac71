//! Edits, conflicts, deletions, undo, and older versions.

use std::time::{Duration, SystemTime};

use weald::forest::disk::Moment;
use weald_board::model::{BoardError, Body, Deed, DeletedBy};

use super::support::*;

#[test]
fn an_edit_from_a_stale_page_loses_neither_text() {
    weald::block_on(on_both(async |boards| {
        let tea = board(&boards, "Tea").await;
        let id = write(&boards, &tea, None, "one").await;
        let seen = boards.board(&tea).unwrap().version();
        // Messages that others write elsewhere are no conflict.
        write(&boards, &tea, Some(id), "an answer").await;
        boards
            .edit(target(&tea, id, ada()), seen, &says("two"))
            .await
            .unwrap();
        assert_eq!(text(&boards, &tea, id).as_deref(), Some("two"));

        let Err(BoardError::Stale(theirs)) = boards
            .edit(target(&tea, id, ada()), seen, &says("three"))
            .await
        else {
            panic!("the message was changed since");
        };
        assert_eq!(theirs.post().unwrap().text(), "two");
        assert_eq!(text(&boards, &tea, id).as_deref(), Some("two"));
        // The same form once more is the same edit.
        let before = boards.board(&tea).unwrap().version();
        let again = boards
            .edit(target(&tea, id, ada()), seen, &says("two"))
            .await
            .unwrap();
        assert_eq!(again, before);
        assert!(
            boards
                .board(&tea)
                .unwrap()
                .message(id)
                .unwrap()
                .edited()
                .is_some()
        );
    }));
}

#[test]
fn only_the_author_and_a_moderator_change_a_message() {
    weald::block_on(on_both(async |boards| {
        let tea = board(&boards, "Tea").await;
        let id = write(&boards, &tea, None, "one").await;
        let seen = boards.board(&tea).unwrap().version();
        let alans = target(&tea, id, alan());
        let refusals = [
            boards.edit(alans, seen, &says("two")).await,
            boards.delete(alans).await,
            boards.undo(alans, None).await,
            boards.restore(alans).await,
            boards.erase(alans).await,
        ];
        for refused in &refusals[..3] {
            assert!(matches!(refused, Err(BoardError::NotYours)), "{refused:?}");
        }
        assert!(
            refusals[3..]
                .iter()
                .all(|it| matches!(it, Err(BoardError::NotYours))),
            "{refusals:?}"
        );
        boards
            .edit(target(&tea, id, moderator()), seen, &says("two"))
            .await
            .unwrap();
        assert_eq!(text(&boards, &tea, id).as_deref(), Some("two"));
    }));
}

#[test]
fn what_is_deleted_is_hidden_in_every_version_and_comes_back() {
    weald::block_on(on_both(async |boards| {
        let tea = board(&boards, "Tea").await;
        let id = write(&boards, &tea, None, "one").await;
        let then = boards.board(&tea).unwrap().version();
        boards.delete(target(&tea, id, ada())).await.unwrap();
        let body = |by| Body::Deleted(by);
        assert_eq!(
            boards.board(&tea).unwrap().message(id).unwrap().body,
            body(DeletedBy::Author)
        );
        let past = boards.board_at(&tea, Moment::Version(then)).await.unwrap();
        assert_eq!(past.message(id).unwrap().body, body(DeletedBy::Author));
        assert!(matches!(
            boards.history(&tea, id, (None, 50)).await,
            Err(BoardError::Gone)
        ));
        boards.restore(target(&tea, id, ada())).await.unwrap();
        assert_eq!(text(&boards, &tea, id).as_deref(), Some("one"));

        boards.delete(target(&tea, id, moderator())).await.unwrap();
        let refused = boards.restore(target(&tea, id, ada())).await;
        assert!(matches!(refused, Err(BoardError::NotYours)));
        boards
            .undo(target(&tea, id, moderator()), None)
            .await
            .unwrap();
        assert_eq!(text(&boards, &tea, id).as_deref(), Some("one"));

        // What its author has deleted, a moderator can keep deleted.
        boards.delete(target(&tea, id, ada())).await.unwrap();
        boards.delete(target(&tea, id, moderator())).await.unwrap();
        let refused = boards.restore(target(&tea, id, ada())).await;
        assert!(matches!(refused, Err(BoardError::NotYours)), "{refused:?}");
    }));
}

#[test]
fn undo_takes_back_the_last_change_and_is_in_the_history() {
    weald::block_on(on_both(async |boards| {
        let tea = board(&boards, "Tea").await;
        let id = write(&boards, &tea, None, "one").await;
        let hers = target(&tea, id, ada());
        assert!(matches!(
            boards.undo(hers, None).await,
            Err(BoardError::NothingToUndo)
        ));
        let seen = boards.board(&tea).unwrap().version();
        boards.edit(hers, seen, &says("two")).await.unwrap();
        boards.undo(hers, None).await.unwrap();
        assert_eq!(text(&boards, &tea, id).as_deref(), Some("one"));
        boards.undo(hers, None).await.unwrap();
        assert_eq!(text(&boards, &tea, id).as_deref(), Some("two"));

        let history = boards.history(&tea, id, (None, 50)).await.unwrap().states;
        let told: Vec<_> = history
            .iter()
            .map(|it| (it.deed, it.post.as_ref().unwrap().text().to_owned()))
            .collect();
        let edit = |text: &str| (Some(Deed::Edit), text.to_owned());
        assert_eq!(
            told,
            [
                edit("two"),
                edit("one"),
                edit("two"),
                (None, "one".to_owned())
            ]
        );
        for state in history {
            let board = boards
                .board_at(&tea, Moment::Version(state.version))
                .await
                .unwrap();
            assert_eq!(board.message(id).unwrap().post(), state.post.as_ref());
        }
    }));
}

#[test]
fn a_board_is_shown_as_of_a_time() {
    weald::block_on(on_both(async |boards| {
        let tea = board(&boards, "Tea").await;
        let id = write(&boards, &tea, None, "one").await;
        let then = boards.board(&tea).unwrap();
        write(&boards, &tea, None, "two").await;
        let past = boards
            .board_at(&tea, Moment::Time(then.time()))
            .await
            .unwrap();
        assert_eq!(past.version(), then.version());
        assert!(past.is_past() && !then.is_past());
        assert_eq!(past.topics(1).unwrap().0.len(), 1);
        assert_eq!(past.message(id).unwrap().post().unwrap().text(), "one");
        let before = SystemTime::now() - Duration::from_secs(86_400);
        let refused = boards.board_at(&tea, Moment::Time(before)).await;
        assert!(
            matches!(refused, Err(BoardError::NoVersion(_))),
            "{refused:?}"
        );
    }));
}

#[test]
fn an_undo_that_names_its_change_takes_back_no_other_one() {
    weald::block_on(on_both(async |boards| {
        let tea = board(&boards, "Tea").await;
        let id = write(&boards, &tea, None, "one").await;
        let hers = target(&tea, id, ada());
        let last = || {
            let message = boards.board(&tea).unwrap().message(id).unwrap();
            message.change.map(|(_, when)| when)
        };
        let edit = async |text: &str| {
            let seen = boards.board(&tea).unwrap().version();
            boards.edit(hers, seen, &says(text)).await.unwrap();
            last()
        };
        let first = edit("two").await;
        boards.undo(hers, first).await.unwrap();
        // Sent again, it has been done.
        boards.undo(hers, first).await.unwrap();
        assert_eq!(text(&boards, &tea, id).as_deref(), Some("one"));
        let second = edit("three").await;
        boards.undo(hers, first).await.unwrap();
        assert_eq!(text(&boards, &tea, id).as_deref(), Some("three"));
        edit("four").await;
        let stale = boards.undo(hers, second).await;
        assert!(matches!(stale, Err(BoardError::Stale(_))), "{stale:?}");
        assert_eq!(text(&boards, &tea, id).as_deref(), Some("four"));
        // The same for what is not an edit.
        boards.delete(hers).await.unwrap();
        let deleted = last();
        for _ in 0..2 {
            boards.undo(hers, deleted).await.unwrap();
            assert_eq!(text(&boards, &tea, id).as_deref(), Some("four"));
        }
        boards.undo(hers, last()).await.unwrap();
        assert_eq!(text(&boards, &tea, id), None);
    }));
}
