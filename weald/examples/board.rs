//! A bulletin board in a tree: posts and comments, an index, a watch, and an older version.
//!
//! `cargo run -p weald --example board`

use weald::forest::{Attributes, Forest, Path, Query, Since, UpdateError};
use weald::tree::EditError;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    weald::block_on(board())
}

async fn board() -> Result<(), Box<dyn std::error::Error>> {
    let board = Forest::new().create("board").await?;
    board.add_index("author").await?;
    let mut watch = board.watch(&Path::default(), Since::Now)?;

    let post = |author: &'static str, text: &'static str| {
        let board = board.clone();
        async move {
            let update = board.update(|edit| {
                let attributes = Attributes::new().with("author", author).with("text", text);
                edit.append(edit.root(), attributes)
            });
            Ok::<_, UpdateError<EditError>>(update.await?.0)
        }
    };
    let first = post("Ada", "Is anybody here?").await?;
    let before = board.view().version();
    post("Grace", "Yes.").await?;

    let mut edit = board.edit();
    edit.append(
        first,
        Attributes::new()
            .with("author", "Alan")
            .with("text", "Perhaps."),
    )?;
    let committed = edit.commit().bytes(b"from the example").await?;
    println!("{} at {:?}", committed.version, committed.time);

    println!("{}", board.view().tree().root().to_json());
    let by_ada = Query::equal("author", "Ada");
    println!(
        "{} by Ada, {}",
        board.view().find(&by_ada).count(),
        board.view().explain(&by_ada)
    );
    println!(
        "before that there were {} nodes",
        board.at(before).await?.tree().len()
    );
    for _ in 0..3 {
        println!(
            "seen: {:?}",
            watch.next().await?.changes().collect::<Vec<_>>()
        );
    }
    Ok(())
}
