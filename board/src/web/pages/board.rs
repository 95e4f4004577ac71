//! A board: its topics, as they are or as they were.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;

use crate::model::{Answers, Topic};
use crate::text::moment::Stamp;

use super::super::answer::{Answer, page, tagged_page};
use super::super::ask::Ask;
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
}

struct TopicView {
    message: MessageView,
    answers: String,
    /// When somebody answered last, if anybody has.
    active: Option<Stamp>,
}

/// `GET /b/{board}`
pub(crate) async fn show(ask: Arc<Ask>) -> Answer {
    let board = ask.board().await?;
    let (topics, pages) = board.topics(ask.page()?)?;
    tagged_page(&ask, &tag(&board, ask.now), || {
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
        };
        page(&ask, StatusCode::OK, &template)
    })
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
