//! What another program finds, and what only the disk has.

use weald::forest::disk::Moment;
use weald_board::model::{BoardError, Token};

use super::support::*;

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
        assert_eq!(boards.history(&tea, id).await.unwrap().len(), 2);
        let past = boards.board_at(&tea, Moment::Version(then)).await.unwrap();
        assert_eq!(past.message(id).unwrap().post().unwrap().text(), "one");
        // The form is known, although its message says something else by now.
        let again = boards.write(&tea, form).await.unwrap();
        assert_eq!((again.id, again.is_repetition), (id, true));
        boards.undo(target(&tea, id, ada())).await.unwrap();
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
        let history = boards.history(&tea, id).await.unwrap();
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
