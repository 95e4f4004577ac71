//! A large board that is there before the server is measured: made as an import makes it, some hundred messages with
//! each commit, because a request for each of a million messages takes minutes.

use std::io::{IsTerminal, stderr};
use std::time::SystemTime;

use weald_board::Running;
use weald_board::model::{BoardError, BoardName, Draft, Kind, Traveller};

/// How many messages lie between two lines that tell how far it is.
const STEP: u64 = 100_000;

/// Makes the board with this address, and tells people who watch how far it is.
pub(super) async fn import(board: &Running, name: &str, messages: u64) -> Result<(), BoardError> {
    let address: BoardName = name.parse().map_err(|_| BoardError::NoBoard(name.into()))?;
    let mut arrival = board.boards().arrival(&address, (name, "")).await?;
    let is_watched = stderr().is_terminal();
    for number in 1..=messages {
        let draft = Draft {
            title: format!("Topic {number}"),
            text: format!("Message {number} of many."),
            ..Draft::default()
        };
        arrival
            .put(&Traveller {
                id: number,
                parent: None,
                post: Some(draft.check(Kind::Topic)?),
                deleted: None,
                time: SystemTime::now(),
                edited: None,
                owner: None,
                is_proven: false,
            })
            .await?;
        if is_watched && number % STEP == 0 {
            eprintln!("The board has {number} of {messages} messages.");
        }
    }
    arrival.finish().await
}
