//! A board: its topics, as they are or as they were.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use weald::forest::Version;
use weald::forest::disk::Moment;

use crate::model::{Answers, BoardAt, Topic, Versions};
use crate::text::moment::{Stamp, machine_exact};

use super::super::answer::{Answer, page, see, tagged_page};
use super::super::ask::Ask;
use super::super::paging::PagesView;
use super::super::problem::Problem;
use super::super::views::{Frame, MessageView, tag};

/// How many bytes of a topic's text a list shows.
const SHOWN: usize = 200;

#[derive(Template)]
#[template(path = "board.html")]
struct BoardPage {
    frame: Frame,
    about: String,
    topics: Vec<TopicView>,
    pages: PagesView,
    /// The time of this version, as a form field has it.
    at: String,
    slider: Option<SliderView>,
    /// A moment before the versions of the slider, if there may be older ones.
    before: Option<String>,
}

/// A control that goes through versions, step by step: those in memory, or those that were read from the disk.
struct SliderView {
    /// The last version, and how many come before it.
    newest: Version,
    last: usize,
    /// Which of them the page shows.
    shown: usize,
    /// Whether the last version is not the newest one of the board.
    is_past: bool,
}

struct TopicView {
    message: MessageView,
    answers: String,
    /// When somebody answered last, if anybody has.
    active: Option<Stamp>,
}

/// `GET /b/{board}`
pub(crate) async fn show(ask: Arc<Ask>) -> Answer {
    if !ask.asked("step")?.unwrap_or_default().is_empty() {
        return see(&ask, &place_of_step(&ask).await?, None);
    }
    let board = ask.listed_board().await?;
    let number = ask.page()?;
    tagged_page(&ask, &tag(&board, ask.now), || {
        let versions = ask.app.boards.versions_around(&board)?;
        let slider = slider(&board, &versions);
        let (topics, pages) = board.topics(number)?;
        let path = format!("/b/{}", board.name());
        let at = crate::text::moment::machine(board.time());
        let template = BoardPage {
            frame: Frame::of_board(&ask, board.title(), &board),
            about: board.about().to_owned(),
            topics: topics
                .iter()
                .map(|topic| TopicView::new(&ask, topic))
                .collect(),
            pages: PagesView::of_board(&ask, (path, pages), &board, None),
            at: at.trim_end_matches('Z').to_owned(),
            slider,
            before: versions.before.map(machine_exact),
        };
        page(&ask, StatusCode::OK, &template)
    })
}

/// The slider of a page; none, if there is no other version.
fn slider(board: &BoardAt, versions: &Versions) -> Option<SliderView> {
    let all = &versions.all;
    let shown = all
        .iter()
        .rposition(|version| *version <= board.version())?;
    let last = all.len() - 1;
    (last > 0).then(|| SliderView {
        newest: all[last],
        last,
        shown,
        is_past: board.is_from_disk(),
    })
}

/// Where the slider leads: this many versions before the one that was the last when the page was made.
async fn place_of_step(ask: &Ask) -> Result<String, Problem> {
    let name = ask.board_name()?;
    let boards = &ask.app.boards;
    let asked = |field| Ok::<_, Problem>(ask.asked(field)?.unwrap_or_default());
    let (last, step, of) = (asked("last")?, asked("step")?, asked("of")?);
    let number = |text: &str| text.parse::<usize>().ok();
    let back = number(last).zip(number(step));
    let back = back.and_then(|(last, step)| last.checked_sub(step));
    let newest = of.parse::<Version>().ok();
    let (back, newest) = back.zip(newest).ok_or_else(Problem::not_found)?;
    let look = ask.look_unless_kept(&name, newest)?;
    let board = boards.board_at(&name, Moment::Version(newest)).await?;
    drop(look);
    if back == 0 && !board.is_from_disk() {
        return Ok(format!("/b/{name}"));
    }
    let versions = boards.versions_around(&board)?.all;
    let at = versions.iter().position(|version| *version == newest);
    let at = at.and_then(|at| at.checked_sub(back));
    let at = at.ok_or_else(Problem::not_found)?;
    Ok(format!("/b/{name}?at={}", versions[at]))
}

impl TopicView {
    fn new(ask: &Ask, topic: &Topic) -> Self {
        let message = &topic.message;
        let active = message.active.filter(|active| *active > message.time);
        Self {
            message: MessageView::new(ask, message, SHOWN),
            answers: match topic.answers {
                Answers::Exactly(0) => "no answers yet".to_owned(),
                Answers::Exactly(1) => "1 answer".to_owned(),
                Answers::Exactly(count) => format!("{count} answers"),
                Answers::MoreThan(count) => format!("more than {count} answers"),
            },
            active: active.map(|active| Stamp::new(active, ask.now)),
        }
    }
}
