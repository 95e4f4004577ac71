//! What a search in a board has found.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;

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
    found: Vec<MessageView>,
    pages: PagesView,
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
                .map(|message| MessageView::new(&ask, message, SHOWN))
                .collect(),
            pages,
        };
        page(&ask, StatusCode::OK, &template)
    })
}
