//! The JSON API for reading. A tag is the version of the board.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Response, StatusCode};

use crate::model::BoardAt;

use super::super::answer::{Answer, fixed, json, known, tagged};
use super::super::ask::Ask;
use super::values::{BoardValue, ListValue, MessageValue, StateValue, ThreadValue};

const OPENAPI: &str = include_str!("../../../assets/openapi.json");

/// `GET /api/openapi.json`
pub(crate) async fn openapi(_ask: Arc<Ask>) -> Answer {
    Ok(fixed(StatusCode::OK, "application/json", OPENAPI))
}

/// `GET /api/boards`
pub(crate) async fn boards(ask: Arc<Ask>) -> Answer {
    let boards = ask.app.boards.list();
    let boards: Vec<_> = boards.iter().map(BoardValue::new).collect();
    json(StatusCode::OK, &boards)
}

/// `GET /api/boards/{board}`
pub(crate) async fn board(ask: Arc<Ask>) -> Answer {
    let board = ask.board().await?;
    tagged(&ask, &tag(&board), || {
        let (topics, pages) = board.topics(ask.page()?)?;
        let topics = topics.iter().map(MessageValue::of_topic).collect();
        Ok(list(&ListValue::new(&board, pages, topics)))
    })
}

/// `GET /api/boards/{board}/messages/{message}`
pub(crate) async fn message(ask: Arc<Ask>) -> Answer {
    let board = ask.board().await?;
    tagged(&ask, &tag(&board), || {
        let thread = board.thread(ask.id()?, ask.page()?)?;
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

/// `GET /api/boards/{board}/messages/{message}/history`
pub(crate) async fn history(ask: Arc<Ask>) -> Answer {
    let _look = ask.look()?;
    let states = ask
        .app
        .boards
        .history(&ask.board_name()?, ask.id()?)
        .await?;
    let states: Vec<_> = states.iter().map(StateValue::new).collect();
    json(StatusCode::OK, &states)
}

/// `GET /api/boards/{board}/search`
pub(crate) async fn search(ask: Arc<Ask>) -> Answer {
    let board = ask.board().await?;
    let tag = tag(&board);
    if let Some(known) = known(&ask, &tag) {
        return Ok(known);
    }
    let (words, page) = (ask.query.text("q"), ask.page()?);
    let (found, pages) = ask.app.boards.search(&board, words, page).await?;
    tagged(&ask, &tag, || {
        let found = found.iter().map(MessageValue::new).collect();
        Ok(list(&ListValue::new(&board, pages, found)))
    })
}

fn list(list: &ListValue<'_>) -> Response<Body> {
    fixed(StatusCode::OK, "application/json", list.to_json())
}

/// The version; of an older one also the newest, because what is deleted there is hidden here.
fn tag(board: &BoardAt) -> String {
    match board.is_past() {
        false => format!("\"{}\"", board.version()),
        true => format!("\"{}-{}\"", board.version(), board.newest().number),
    }
}
