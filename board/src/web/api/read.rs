//! The JSON API for reading. The `ETag` of an answer is made of the version of the board.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};

use crate::model::{BoardAt, BoardError, Pages};

use super::super::answer::{Answer, fixed, json, known, tagged};
use super::super::ask::Ask;
use super::super::json::Json;
use super::super::paging::PagesView;
use super::values::{BoardValue, ListValue, MessageValue, StateValue, ThreadValue, topics_to_json};

/// How many boards are in one answer, at most.
const BOARDS: usize = 100;
/// How many states of a history are in one answer, at most.
const STATES: usize = 50;

/// The longest tag: three numbers, and what stands between them.
const TAG: usize = 64;

const OPENAPI: &str = include_str!("../../../assets/openapi.json");

/// `GET /api/openapi.json`
pub(crate) async fn openapi(_ask: Arc<Ask>) -> Answer {
    Ok(fixed(StatusCode::OK, "application/json", OPENAPI))
}

/// `GET /api/boards`: a page of them; the header `Link` says where the next one is, of the same version.
pub(crate) async fn boards(ask: Arc<Ask>) -> Answer {
    let (boards, version) = ask.boards()?;
    let number = ask.page()?;
    let of = version
        .map(|version| version.to_string())
        .unwrap_or_default();
    // Also how many there are: a board that was deleted since is no longer among them.
    tagged(&ask.headers, &format!("\"{of}-{}\"", boards.len()), || {
        let pages = Pages::new(number, BOARDS, boards.len()).ok_or(BoardError::NoPage(number))?;
        let shown = boards.get(pages.range()).unwrap_or_default();
        let shown: Vec<_> = shown.iter().map(BoardValue::new).collect();
        let next = pages.next().map(|next| format!("?page={next}&of={of}"));
        linked(json(StatusCode::OK, &shown), next)
    })
}

/// `GET /api/boards/{board}`: a page of its topics; the header `Link` says where the next one is, of the same version.
pub(crate) async fn board(ask: Arc<Ask>) -> Answer {
    let board = ask.listed_board().await?;
    let number = ask.page()?;
    tagged(&ask.headers, &tag(&board), || {
        let pages = board.pages_of_topics(number)?;
        let make = || topics_to_json(&board, number);
        let list = ask.app.lists.find_or(&board, number, make)?;
        let next = PagesView::of_board(&ask, (String::new(), pages), &board, None).next();
        linked(Ok(fixed(StatusCode::OK, "application/json", list)), next)
    })
}

/// `GET /api/boards/{board}/messages/{message}`
pub(crate) async fn message(ask: Arc<Ask>) -> Answer {
    let board = ask.board().await?;
    let (id, number) = (ask.id()?, ask.page()?);
    tagged(&ask.headers, &tag(&board), || {
        let thread = board.thread(id, number)?;
        let status = match thread.head.post() {
            Some(_) => StatusCode::OK,
            None => StatusCode::GONE,
        };
        let value = ThreadValue {
            version: board.version().to_string(),
            message: MessageValue::new(&thread.head),
            page: thread.pages.number,
            pages: thread.pages.count,
            answers: thread.answers.iter().map(MessageValue::of_answer).collect(),
        };
        json(status, &value)
    })
}

/// `GET /api/boards/{board}/messages/{message}/history`: a part of it; the header `Link` says where the older states
/// are.
pub(crate) async fn history(ask: Arc<Ask>) -> Answer {
    let (name, id, from) = (ask.board_name()?, ask.id()?, ask.from()?);
    let boards = &ask.app.boards;
    // What the message says now decides whether its history is shown.
    let newest = boards.board(&name)?.version();
    let tag = match from {
        None => format!("\"{newest}\""),
        Some(from) => format!("\"{from}-{}\"", newest.number),
    };
    if let Some(known) = known(&ask.headers, &tag) {
        return Ok(known);
    }
    let _look = ask.look()?;
    let history = boards.history(&name, id, (from, STATES)).await?;
    let states: Vec<_> = history.states.iter().map(StateValue::new).collect();
    let next = history
        .older
        .map(|older| format!("?from={}", older.version));
    let answer = linked(json(StatusCode::OK, &states), next);
    tagged(&ask.headers, &tag, || answer)
}

/// An answer whose list goes on at a further address.
fn linked(answer: Answer, next: Option<String>) -> Answer {
    let mut response = answer?;
    if let Some(next) = next {
        put_next(response.headers_mut(), &next);
    }
    Ok(response)
}

/// The header that says where a list goes on (RFC 8288).
pub(crate) fn put_next(headers: &mut HeaderMap, next: &str) {
    if let Ok(link) = HeaderValue::from_str(&format!("<{next}>; rel=\"next\"")) {
        headers.insert(header::LINK, link);
    }
}

/// `GET /api/boards/{board}/search`: a page of what was found; `Link` as for a board.
pub(crate) async fn search(ask: Arc<Ask>) -> Answer {
    let board = ask.listed_board().await?;
    let tag = tag(&board);
    // A question that is refused is refused with every tag.
    let (words, page) = (ask.asked("q")?.unwrap_or_default(), ask.page()?);
    if let Some(known) = known(&ask.headers, &tag) {
        return Ok(known);
    }
    let (found, pages) = ask.app.boards.search(&board, words, page).await?;
    tagged(&ask.headers, &tag, || {
        let found = found.iter().map(MessageValue::new).collect();
        let list = list(&ListValue::new(&board, pages, found));
        let next = PagesView::of_board(&ask, (String::new(), pages), &board, Some(words)).next();
        linked(Ok(list), next)
    })
}

fn list(list: &ListValue<'_>) -> Response<Body> {
    fixed(StatusCode::OK, "application/json", list.to_json())
}

/// The version; of an older one also the newest, because what is deleted there is hidden here.
pub(crate) fn tag(board: &BoardAt) -> String {
    let mut tag = Json::with_room(TAG);
    tag.raw("\"").version(board.version());
    if board.is_past() {
        tag.raw("-").number(board.newest().number);
    }
    tag.raw("\"");
    String::from_utf8(tag.into_bytes()).unwrap_or_default()
}
