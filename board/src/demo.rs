//! Boards with content, to look around in.

use std::time::Duration;

use weald::forest::{Clock, NodeId};

use crate::model::{
    BoardError, BoardName, Boards, DemoClock, Draft, Kind, NewMessage, Requester, Target,
};

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

/// How long ago the last message was written.
const LAST: Duration = Duration::from_secs(12 * 60);

/// A message that is to be written, and the one that it answers, as a number of an earlier one of the same board.
struct Planned {
    above: Option<usize>,
    title: &'static str,
    said: &'static Said,
}

/// Fills boards that are empty with boards, topics and answers, as if they had been written in the last days. `clock`
/// is that of their forest, and is right from then on.
///
/// # Errors
/// Those of writing.
pub async fn fill(boards: &Boards, clock: &DemoClock) -> Result<(), BoardError> {
    let filled = fill_days(boards, clock).await;
    clock.fall_behind(Duration::ZERO);
    filled?;
    Box::pin(edited(boards)).await
}

async fn fill_days(boards: &Boards, clock: &DemoClock) -> Result<(), BoardError> {
    let mut all = Vec::new();
    for (title, about, topics) in [
        ("Garden", "What grows, and what eats it", GARDEN),
        ("Tea", "Leaves, water, and time", TEA),
        (
            "About this board",
            "Questions, answers, and a place to try things",
            HOUSE,
        ),
    ] {
        let board = boards.create(title, about, None).await?;
        all.push((board, planned(topics), Vec::new()));
    }
    let mut rest: usize = all.iter().map(|(_, planned, _)| planned.len()).sum();
    let count = rest;
    while rest > 0 {
        rest -= 1;
        // The board that has the least part of its messages is next.
        let part = |(_, planned, written): &(BoardName, Vec<Planned>, Vec<NodeId>)| {
            written.len() * 1_000 / planned.len()
        };
        let next = all.iter_mut().filter(|it| it.2.len() < it.1.len());
        let Some((board, planned, written)) = next.min_by_key(|it| part(it)) else {
            break;
        };
        clock.fall_behind(before(rest, count));
        let Planned { above, title, said } = planned[written.len()];
        let parent = above.map(|above| written[above]);
        let texts = [said.0, title, said.1];
        written.push(write(boards, (board, parent), texts, clock).await?);
    }
    Ok(())
}

/// How long ago a message was written behind which so many follow: the later, the closer together.
fn before(rest: usize, count: usize) -> Duration {
    let part =
        f64::from(u32::try_from(rest).unwrap_or(0)) / f64::from(u32::try_from(count).unwrap_or(1));
    LAST + (DemoClock::BEGAN - LAST).mul_f64(part * part)
}

/// The messages of a board, each behind the one that it answers. The list is walked without recursion.
fn planned(topics: &'static [About]) -> Vec<Planned> {
    let mut all = Vec::new();
    for About(title, said) in topics {
        let mut rest = vec![(None, *title, said)];
        while let Some((above, title, said)) = rest.pop() {
            let own = all.len();
            all.push(Planned { above, title, said });
            rest.extend(said.2.iter().rev().map(|answer| (Some(own), "", answer)));
        }
    }
    all
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
    (board, parent): (&BoardName, Option<NodeId>),
    [name, title, text]: [&str; 3],
    clock: &DemoClock,
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
    Ok(boards.write_at(board, new, || clock.now()).await?.id)
}

/// Nobody has these secrets: they are made for this run of the program.
fn author(name: &str) -> Requester {
    static RUN: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let run = RUN.get_or_init(crate::web::visitor::random);
    Requester::of_secret(&format!("{run} {name}"))
}
