//! Writes by GET, for measuring with tools that send nothing else. They are served only if the board is started with
//! that setting, because any page of the web could write with them.

use std::sync::Arc;

use axum::http::StatusCode;

use crate::model::{BoardError, BoardName, Draft, Kind, NewMessage, Target};

use super::answer::{Answer, json};
use super::api::change::receipt;
use super::api::values::BoardValue;
use super::ask::{Ask, draft, number};
use super::problem::Problem;
use super::visitor::program;

/// `GET /get/create?title=…&about=…`
pub(crate) async fn create(ask: Arc<Ask>) -> Answer {
    ask.may_write()?;
    let boards = &ask.app.boards;
    let (title, about) = (ask.query.text("title"), ask.query.text("about"));
    let name = boards.create(title, about, None).await?;
    let board = boards.board(&name)?;
    json(StatusCode::CREATED, &BoardValue::new(&board.info()))
}

/// `GET /get/write?board=…&text=…`, with `title`, `author` and `parent`
pub(crate) async fn write(ask: Arc<Ask>) -> Answer {
    ask.may_write()?;
    let parent = match ask.query.text("parent") {
        "" => None,
        text => Some(number(text).ok_or_else(Problem::not_found)?),
    };
    let kind = match parent {
        None => Kind::Topic,
        Some(_) => Kind::Reply,
    };
    let post = draft(&ask.query).check(kind).map_err(BoardError::from)?;
    let requester = program(&ask.headers);
    let requester = ask.under_name(requester, post.author(), "").await?;
    let new = NewMessage {
        parent,
        post,
        requester,
        token: None,
    };
    let written = ask.app.boards.write(&name(&ask)?, new).await?;
    receipt(StatusCode::CREATED, written.id, written.version)
}

/// `GET /get/edit?board=…&message=…&text=…`, with the key of the message's author
pub(crate) async fn edit(ask: Arc<Ask>) -> Answer {
    ask.may_write()?;
    let name = name(&ask)?;
    let id = number(ask.query.text("message")).ok_or_else(Problem::not_found)?;
    let board = ask.app.boards.board(&name)?;
    let message = board.message(id)?;
    let post = message.post().ok_or(BoardError::Gone)?;
    let kind = match message.is_topic() {
        true => Kind::Topic,
        false => Kind::Reply,
    };
    let text = ask.query.text("text").to_owned();
    let draft = Draft {
        text,
        ..Draft::of(post)
    };
    let post = draft.check(kind).map_err(BoardError::from)?;
    let requester = program(&ask.headers);
    let target = Target {
        board: &name,
        id,
        requester: ask.under_name(requester, post.author(), "").await?,
    };
    let version = ask.app.boards.edit(target, board.version(), &post).await?;
    receipt(StatusCode::OK, id, version)
}

fn name(ask: &Ask) -> Result<BoardName, Problem> {
    let name = ask.query.text("board").parse();
    name.map_err(|_| Problem::not_found())
}
