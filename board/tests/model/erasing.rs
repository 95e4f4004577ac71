//! An erased text is in no version any more.

use weald::forest::disk::Moment;
use weald_board::model::{BoardError, Body, NewMessage, Requester};

use super::support::*;

#[test]
fn an_erased_message_is_gone_from_every_version() {
    weald::block_on(on_both(async |boards| {
        let tea = board(&boards, "Tea").await;
        let id = write(&boards, &tea, None, "secret one").await;
        let answer = write(&boards, &tea, Some(id), "an answer").await;
        let then = boards.board(&tea).unwrap().version();
        let hers = target(&tea, id, ada());
        boards.edit(hers, then, &says("secret two")).await.unwrap();
        let before = boards.board(&tea).unwrap().version();
        let board = boards.board(&tea).unwrap();
        assert_eq!(boards.search(&board, "secret", 1).await.unwrap().0.len(), 1);

        let erased = boards.erase(hers).await.unwrap();
        assert!(erased > before, "kept pages are no longer valid");
        for version in [then, before, erased] {
            let board = boards
                .board_at(&tea, Moment::Version(version))
                .await
                .unwrap();
            assert!(matches!(board.message(id).unwrap().body, Body::Erased(_)));
            assert_eq!(board.thread(id, 1).unwrap().answers[0].message.id, answer);
            assert!(
                boards
                    .search(&board, "secret", 1)
                    .await
                    .unwrap()
                    .0
                    .is_empty()
            );
        }
        let history = boards.history(&tea, id, (None, 50)).await.unwrap().states;
        assert!(history.iter().all(|state| state.post.is_none()));
        assert!(matches!(
            boards.undo(target(&tea, id, moderator()), None).await,
            Err(BoardError::Gone)
        ));
        let refused = boards
            .edit(target(&tea, id, moderator()), erased, &says("again"))
            .await;
        assert!(matches!(refused, Err(BoardError::Gone)), "{refused:?}");
    }));
}

#[test]
fn no_edit_brings_back_what_is_erased_meanwhile() {
    weald::block_on(on_both(async |boards| {
        let tea = board(&boards, "Tea").await;
        for _ in 0..50 {
            let id = write(&boards, &tea, None, "secret").await;
            let editors: Vec<_> = (0..4)
                .map(|editor| {
                    let (boards, tea) = (boards.clone(), tea.clone());
                    weald::spawn(async move {
                        for number in 0.. {
                            let seen = boards.board(&tea).unwrap().version();
                            let post = says(&format!("secret {editor} {number}"));
                            let edited = boards.edit(target(&tea, id, ada()), seen, &post).await;
                            if let Err(BoardError::Gone | BoardError::NotYours) = edited {
                                return;
                            }
                        }
                    })
                })
                .collect();
            boards.erase(target(&tea, id, moderator())).await.unwrap();
            for editor in editors {
                editor.await.unwrap();
            }
            let body = boards.board(&tea).unwrap().message(id).unwrap().body;
            assert!(matches!(body, Body::Erased(_)), "{body:?}");
        }
    }));
}

#[test]
fn what_nobody_owns_can_be_erased() {
    weald::block_on(on_both(async |boards| {
        let tea = board(&boards, "Tea").await;
        let nobodys = NewMessage {
            requester: Requester::default(),
            ..new(None, "secret")
        };
        let id = boards.write(&tea, nobodys).await.unwrap().id;
        boards.erase(target(&tea, id, moderator())).await.unwrap();
        let body = boards.board(&tea).unwrap().message(id).unwrap().body;
        assert!(matches!(body, Body::Erased(_)));
    }));
}

#[test]
fn what_is_deleted_can_be_erased() {
    weald::block_on(on_both(async |boards| {
        let tea = board(&boards, "Tea").await;
        let id = write(&boards, &tea, None, "secret").await;
        boards.delete(target(&tea, id, ada())).await.unwrap();
        boards.erase(target(&tea, id, ada())).await.unwrap();
        let again = boards.erase(target(&tea, id, ada())).await;
        assert!(matches!(again, Err(BoardError::Gone)), "{again:?}");
        boards.erase(target(&tea, id, moderator())).await.unwrap();
        let body = boards.board(&tea).unwrap().message(id).unwrap().body;
        assert!(matches!(body, Body::Erased(_)));
    }));
}
