//! Boards with content, to look around in.

use weald::forest::NodeId;

use crate::model::{BoardError, BoardName, Boards, Draft, Kind, NewMessage, Requester, Target};

/// A message, and its answers.
struct Said(&'static str, &'static str, &'static [Said]);

/// A topic: its title, and the message that begins it.
struct About(&'static str, Said);

const TEA: &[About] = &[
    About(
        "What do you drink in the morning?",
        Said(
            "Grace",
            "I have moved from Assam to *hojicha*: roasted, little caffeine, and it forgives water that is too hot.\n\nWhat is in your cup before eight?",
            &[
                Said(
                    "Edsger",
                    "Coffee. One cup, at seven sharp.",
                    &[Said(
                        "Grace",
                        "This is the tea board, you know.",
                        &[Said(
                            "Edsger",
                            "That is why I write it here and not to the coffee board. They would agree with me, and nothing would be learned.",
                            &[],
                        )],
                    )],
                ),
                Said(
                    "Barbara",
                    "Sencha, two infusions:\n\n1. 70 °C, one minute\n2. 80 °C, twenty seconds\n\nThe second one is the better one.",
                    &[Said(
                        "Alan",
                        "Do you pour the first one away?",
                        &[Said(
                            "Barbara",
                            "Never. It wakes the leaves **and** me.",
                            &[],
                        )],
                    )],
                ),
                Said("Ada", "Whatever is left from the evening before.", &[]),
            ],
        ),
    ),
    About(
        "The pot drips. Always.",
        Said(
            "Alan",
            "Every pot that I have owned drips. Has anybody found one that does not, or at least the reason?",
            &[
                Said(
                    "Ada",
                    "The lip must be sharp below. Then the water has nothing to run along.\n\n> Every pot that I have owned drips\n\nEvery pot that is *for sale*, perhaps.",
                    &[],
                ),
                Said(
                    "Donald",
                    "I have written something about it. It has become longer than I expected.",
                    &[],
                ),
            ],
        ),
    ),
];

const GARDEN: &[About] = &[
    About(
        "Slugs: what has really worked for you?",
        Said(
            "Barbara",
            "Coffee grounds: no. Copper: no. Beer: they invite their friends.\n\nI am down to a torch and a bucket.",
            &[
                Said(
                    "Grace",
                    "Ducks.",
                    &[Said(
                        "Barbara",
                        "I have a balcony.",
                        &[Said("Grace", "Small ducks.", &[])],
                    )],
                ),
                Said(
                    "Edsger",
                    "Plant what they do not eat. A problem that does not arise need not be solved.",
                    &[],
                ),
            ],
        ),
    ),
    About(
        "First frost",
        Said(
            "Donald",
            "It was at **-2 °C** here this morning. The dahlias are out of the ground since yesterday; the fig is wrapped.",
            &[],
        ),
    ),
];

const HOUSE: &[About] = &[About(
    "How this board works",
    Said(
        "Ada",
        "Every board is a tree in a database that keeps all versions, and every change is one commit. So\n\n- each message has a history, with what was changed, word by word;\n- at the foot of a board you can go to any time and see it *as it was then*;\n- what you delete can be restored, and what you erase is gone from every version.\n\nWrite something below, change it, and look at its history.",
        &[Said(
            "Alan",
            "And if two people change the same message at once?",
            &[Said(
                "Ada",
                "The second one sees both texts, and nothing is lost. Open a message of yours in two tabs and try it.",
                &[],
            )],
        )],
    ),
)];

/// Fills boards that are empty with boards, topics and answers.
///
/// # Errors
/// Those of writing.
pub async fn fill(boards: &Boards) -> Result<(), BoardError> {
    let all = [
        ("Garden", "What grows, and what eats it", GARDEN),
        ("Tea", "Leaves, water, and time", TEA),
        (
            "About this board",
            "Questions, answers, and a place to try things",
            HOUSE,
        ),
    ];
    for (title, about, topics) in all {
        let board = boards.create(title, about, None).await?;
        for About(title, said) in topics {
            // The list is walked without recursion, which a future cannot have.
            let mut rest = vec![(None, *title, said)];
            while let Some((parent, title, Said(author, text, answers))) = rest.pop() {
                let id = write(boards, &board, parent, [*author, title, *text]).await?;
                rest.extend(answers.iter().rev().map(|answer| (Some(id), "", answer)));
            }
        }
    }
    Box::pin(edited(boards)).await
}

/// One message with a history.
async fn edited(boards: &Boards) -> Result<(), BoardError> {
    let garden = "garden".parse().map_err(|_| BoardError::TokenUsed)?;
    let board = boards.board(&garden)?;
    let Some(message) = board.latest(1).into_iter().next() else {
        return Ok(());
    };
    let Some(post) = message.post() else {
        return Ok(());
    };
    let text = post.text().replace("-2 °C", "-4 °C")
        + " The lemon tree stands in the kitchen, where it is in everybody's way.";
    let draft = Draft {
        text,
        ..Draft::of(post)
    };
    let post = draft.check(Kind::Topic)?;
    let target = Target {
        board: &garden,
        id: message.id,
        requester: author(post.author()),
    };
    boards.edit(target, board.version(), &post).await?;
    Ok(())
}

async fn write(
    boards: &Boards,
    board: &BoardName,
    parent: Option<NodeId>,
    [name, title, text]: [&str; 3],
) -> Result<NodeId, BoardError> {
    let kind = match parent {
        None => Kind::Topic,
        Some(_) => Kind::Reply,
    };
    let [author_name, title, text] = [name, title, text].map(str::to_owned);
    let post = Draft {
        author: author_name,
        title,
        text,
    }
    .check(kind)?;
    let new = NewMessage {
        parent,
        post,
        requester: author(name),
        token: None,
    };
    Ok(boards.write(board, new).await?.id)
}

/// Nobody has these secrets: they are made for this run of the program.
fn author(name: &str) -> Requester {
    static RUN: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let run = RUN.get_or_init(crate::web::visitor::random);
    Requester::of_secret(&format!("{run} {name}"))
}
