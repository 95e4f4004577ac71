//! What a search in a board has found.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;

use crate::model::{MOST_FOUND, Message, Post, words};
use crate::text::hits::{excerpt, mark, mark_text};
use crate::text::markdown;

use super::super::answer::{Answer, page, tagged_page};
use super::super::ask::Ask;
use super::super::paging::PagesView;
use super::super::views::{Frame, MessageView, tag};

/// How many bytes of a message a list shows.
const SHOWN: usize = 300;
/// The most characters of a query.
const MAX_QUERY: usize = 100;

#[derive(Template)]
#[template(path = "search.html")]
struct SearchPage {
    frame: Frame,
    /// Each with its title as HTML.
    found: Vec<(MessageView, String)>,
    count: String,
    pages: PagesView,
}

/// A message with what was sought marked, and its title. A long text begins near the first hit.
fn marked(ask: &Ask, message: &Message, sought: &[String]) -> (MessageView, String) {
    let mut view = MessageView::new(ask, message, SHOWN);
    let text = message.post().map(Post::text).unwrap_or_default();
    let from = excerpt(text, sought);
    if from > 0 {
        let rest = &text[from..];
        let rest = markdown::beginning(rest, SHOWN).unwrap_or(rest);
        view.html = markdown::to_html(&format!("…{rest}"));
    }
    view.html = mark(&view.html, sought);
    let title = mark_text(&view.title, sought);
    (view, title)
}

/// `GET /b/{board}/search`
pub(crate) async fn show(ask: Arc<Ask>) -> Answer {
    let board = ask.listed_board().await?;
    let sought = ask.asked("q")?.unwrap_or_default();
    let sought: String = sought.chars().take(MAX_QUERY).collect();
    let (found, pages) = ask.app.boards.search(&board, &sought, ask.page()?).await?;
    tagged_page(&ask, &tag(&board, ask.now), || {
        let title = match sought.trim() {
            "" => "Search".to_owned(),
            sought => format!("Search for “{sought}”"),
        };
        let query: String = form_urlencoded::byte_serialize(sought.as_bytes()).collect();
        let path = format!("/b/{}/search", board.name());
        let words: Vec<_> = words(&sought).collect();
        let count = match pages.items() {
            1 => "1 message".to_owned(),
            MOST_FOUND.. => format!("The newest {MOST_FOUND} messages"),
            count => format!("{count} messages"),
        };
        let mut frame = Frame::of_board(&ask, title, &board);
        if let Some(board) = &mut frame.board {
            board.now = format!("{path}?q={query}");
        }
        let pages = PagesView::of_board(&ask, (path, pages), &board, Some(&sought));
        frame.sought = sought;
        let template = SearchPage {
            frame,
            found: found
                .iter()
                .map(|message| marked(&ask, message, &words))
                .collect(),
            count,
            pages,
        };
        page(&ask, StatusCode::OK, &template)
    })
}
