//! The changes of a board, none missed and none twice, from memory and from the disk.

use std::time::Duration;

use weald_board::model::{BoardError, Follow, Happened};

use super::support::*;

/// The next change; a test that would hang fails.
async fn next(follow: &mut Follow) -> Happened {
    let next = weald::timeout(Duration::from_secs(60), follow.next()).await;
    next.expect("a change is told within a minute").unwrap()
}

#[test]
fn each_change_is_told_once_with_what_was_done() {
    weald::block_on(on_both(async |boards| {
        let tea = board(&boards, "Tea").await;
        let since = boards.board(&tea).unwrap().version();
        let topic = write(&boards, &tea, None, "one").await;
        let answer = write(&boards, &tea, Some(topic), "two").await;
        let mut follow = boards.follow(&tea, Some(since)).await.unwrap();
        let mut now = boards.follow(&tea, None).await.unwrap();
        let seen = boards.board(&tea).unwrap().version();
        boards
            .edit(target(&tea, answer, ada()), seen, &says("three"))
            .await
            .unwrap();
        boards.delete(target(&tea, answer, ada())).await.unwrap();
        boards.restore(target(&tea, answer, ada())).await.unwrap();
        let last = boards.erase(target(&tea, answer, ada())).await.unwrap();
        let mut told = Vec::new();
        let mut versions = Vec::new();
        while versions.last() != Some(&last) {
            let Happened {
                version,
                did,
                messages,
            } = next(&mut follow).await;
            told.extend(messages.first().map(|id| (did, *id)));
            versions.push(version);
        }
        // An erasure hides the message before it takes the bytes.
        let answers = ["write", "edit", "delete", "restore", "erase", "erase"];
        let answers = answers.map(|did| (did, answer));
        assert_eq!(told, [vec![("write", topic)], answers.to_vec()].concat());
        assert!(
            versions.is_sorted_by(|one, other| one < other),
            "{versions:?}"
        );
        assert_eq!(next(&mut now).await.did, "edit");
    }));
}

#[test]
fn what_memory_has_let_go_comes_from_the_disk() {
    weald::block_on(async {
        let directory = tempfile::tempdir().unwrap();
        let boards = open_forgetful(directory.path()).await;
        let tea = board(&boards, "Tea").await;
        let since = boards.board(&tea).unwrap().version();
        let mut expected = Vec::new();
        for number in 0..5 {
            expected.push(write(&boards, &tea, None, &number.to_string()).await);
        }
        let mut slow = boards.follow(&tea, Some(since)).await.unwrap();
        let first = next(&mut slow).await;
        boards.close().await;
        let boards = open_forgetful(directory.path()).await;
        let mut follow = boards.follow(&tea, Some(first.version)).await.unwrap();
        let mut told = first.messages;
        for number in 5..10 {
            told.extend(next(&mut follow).await.messages);
            // While others write, and memory lets go what is not told yet.
            expected.push(write(&boards, &tea, None, &number.to_string()).await);
        }
        while told.len() < expected.len() {
            told.extend(next(&mut follow).await.messages);
        }
        assert_eq!(told, expected);
        let version = boards.board(&tea).unwrap().version();
        let future = weald::forest::Version {
            number: version.number + 9,
            ..version
        };
        assert!(matches!(
            boards.follow(&tea, Some(future)).await,
            Err(BoardError::NoVersion(_))
        ));
    });
}
