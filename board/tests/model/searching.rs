//! Search by the beginnings of words, in the version that is asked.

use weald::forest::disk::Moment;
use weald_board::model::BoardError;

use super::support::*;

#[test]
fn messages_are_found_by_the_beginnings_of_their_words() {
    weald::block_on(on_both(async |boards| {
        let tea = board(&boards, "Tea").await;
        let topic = write(&boards, &tea, None, "Oolong and Sencha").await;
        let answer = write(&boards, &tea, Some(topic), "Sencha is ÄLTER").await;
        let found = async |query: &str| {
            let board = boards.board(&tea).unwrap();
            let (found, _) = boards.search(&board, query, 1).await.unwrap();
            found.into_iter().map(|it| it.id).collect::<Vec<_>>()
        };
        assert_eq!(found("sencha").await, [answer, topic]);
        assert_eq!(found("SEN oo").await, [topic]);
        assert_eq!(found("älter").await, [answer]);
        for query in ["", "enc", "sencha nothing"] {
            assert!(found(query).await.is_empty(), "{query}");
        }
        let then = boards.board(&tea).unwrap().version();
        boards
            .edit(target(&tea, answer, ada()), then, &says("Matcha"))
            .await
            .unwrap();
        assert_eq!(found("sencha").await, [topic]);
        assert_eq!(found("match").await, [answer]);
        boards.delete(target(&tea, answer, ada())).await.unwrap();
        assert!(found("match").await.is_empty());
        let past = boards.board_at(&tea, Moment::Version(then)).await.unwrap();
        assert_eq!(boards.search(&past, "sencha", 1).await.unwrap().0.len(), 1);
        assert!(matches!(
            boards.search(&past, "sencha", 2).await,
            Err(BoardError::NoPage(_))
        ));
    }));
}
