//! A board: its topics, as they are or as they were.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use weald::forest::Version;

use crate::model::{Answers, Topic};
use crate::text::moment::Stamp;

use super::super::answer::{Answer, page, see, tagged_page};
use super::super::ask::Ask;
use super::super::problem::Problem;
use super::super::views::{Frame, MessageView, PagesView, tag};

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
}

/// A control that goes through the versions in memory.
struct SliderView {
    /// The newest version, and how many come before it.
    newest: Version,
    last: usize,
    /// Which of them the page shows.
    shown: usize,
}

struct TopicView {
    message: MessageView,
    answers: String,
    /// When somebody answered last, if anybody has.
    active: Option<Stamp>,
}

/// `GET /b/{board}`
pub(crate) async fn show(ask: Arc<Ask>) -> Answer {
    if !ask.query.text("step").is_empty() {
        return see(&ask, &place_of_step(&ask)?, None);
    }
    let board = ask.board().await?;
    tagged_page(&ask, &tag(&board, ask.now), || {
        let slider = slider(&ask, board.version())?;
        let (topics, pages) = board.topics(ask.page()?)?;
        let at = crate::text::moment::machine(board.time());
        let template = BoardPage {
            frame: Frame::of_board(&ask, board.title(), &board),
            about: board.about().to_owned(),
            topics: topics
                .iter()
                .map(|topic| TopicView::new(&ask, topic))
                .collect(),
            pages: PagesView::new(pages, board.version(), ""),
            at: at.trim_end_matches('Z').to_owned(),
            slider,
        };
        page(&ask, StatusCode::OK, &template)
    })
}

/// The slider of a page; none on a page of a version that memory does not have, or if there is no other one.
fn slider(ask: &Ask, shown: Version) -> Result<Option<SliderView>, Problem> {
    let versions = ask.app.boards.versions(&ask.board_name()?)?;
    let shown = versions.iter().rposition(|version| *version <= shown);
    let last = versions.len().saturating_sub(1);
    let newest = versions.last().filter(|_| last > 0);
    Ok(newest.zip(shown).map(|(newest, shown)| SliderView {
        newest: *newest,
        last,
        shown,
    }))
}

/// Where the slider leads: this many versions before the one that was the newest when the page was made.
fn place_of_step(ask: &Ask) -> Result<String, Problem> {
    let name = ask.board_name()?;
    let number = |field: &str| ask.query.text(field).parse::<usize>().ok();
    let newest = ask.query.text("of").parse::<Version>().ok();
    let versions = ask.app.boards.versions(&name)?;
    let at = versions.iter().position(|version| Some(*version) == newest);
    let back = number("last").zip(number("step"));
    let back = back.and_then(|(last, step)| last.checked_sub(step));
    match (
        back,
        at.zip(back).and_then(|(at, back)| at.checked_sub(back)),
    ) {
        (Some(0), _) => Ok(format!("/b/{name}")),
        (_, Some(at)) => Ok(format!("/b/{name}?at={}", versions[at])),
        _ => Err(Problem::not_found()),
    }
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
