//! The JSON API for writing. A key of the caller's choice (`Authorization: Bearer`) says whose a message is; the header
//! `Idempotency-Key` makes one message of a request that is sent twice; `If-Match` names the version that an edit is
//! of.

use std::borrow::Cow;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;
use weald::forest::disk::Moment;
use weald::forest::{NodeId, Version};

use crate::model::{
    BoardError, BoardName, Kind, NewMessage, Post, Requester, Target, Token, check,
};

use super::super::answer::{Answer, has, json};
use super::super::ask::Ask;
use super::super::problem::Problem;
use super::super::visitor::program;
use super::values::{BoardValue, ReceiptValue};

/// The most bytes of an `Idempotency-Key`.
const MAX_TOKEN: usize = 200;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewBoard {
    title: String,
    #[serde(default)]
    about: String,
}

/// What somebody writes. It borrows from the body whatever has no escapes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewText<'a> {
    #[serde(borrow, default)]
    author: Cow<'a, str>,
    #[serde(borrow, default)]
    title: Cow<'a, str>,
    #[serde(borrow)]
    text: Cow<'a, str>,
    #[serde(default)]
    parent: Option<u64>,
    /// Of the name of the author, if that is protected.
    #[serde(borrow, default)]
    pub(crate) passphrase: Cow<'a, str>,
}

impl NewText<'_> {
    fn check(&self, kind: Kind) -> Result<Post, Problem> {
        let parts = [&self.author, &self.title, &self.text].map(|it| &**it);
        Ok(check(parts, kind).map_err(BoardError::from)?)
    }

    /// What it answers, and the post that it is.
    pub(crate) fn message(&self) -> Result<(Option<NodeId>, Post), Problem> {
        let parent = match self.parent {
            None => None,
            Some(number) => {
                let id = NodeId::new(number);
                Some(id.ok_or(BoardError::NoMessage(number))?)
            }
        };
        let kind = match parent {
            None => Kind::Topic,
            Some(_) => Kind::Reply,
        };
        Ok((parent, self.check(kind)?))
    }
}

/// `POST /api/boards`
pub(crate) async fn create(ask: Arc<Ask>) -> Answer {
    let new: NewBoard = read(&ask)?;
    must_bring_no_bad_key(&ask)?;
    ask.may_write()?;
    let site: BoardName = "new".parse().map_err(|_| Problem::not_found())?;
    let token = token(&ask, &site, &program(&ask.headers))?;
    let name = ask.app.boards.create(&new.title, &new.about, token).await?;
    let board = ask.app.boards.board(&name)?;
    let answer = json(StatusCode::CREATED, &BoardValue::new(&board.info()));
    created(answer, &format!("/api/boards/{name}"))
}

/// `POST /api/boards/{board}/messages`
pub(crate) async fn write(ask: Arc<Ask>) -> Answer {
    let said: NewText<'_> = read(&ask)?;
    must_bring_no_bad_key(&ask)?;
    ask.may_write()?;
    let name = ask.board_name()?;
    let requester = program(&ask.headers);
    let token = token(&ask, &name, &requester)?;
    let (parent, post) = said.message()?;
    let requester = ask.under_name(requester, post.author(), &said.passphrase);
    let requester = requester.await?;
    let new = NewMessage {
        parent,
        post,
        requester,
        token,
    };
    let written = ask.app.boards.write(&name, new).await?;
    let place = format!("/api/boards/{name}/messages/{}", written.id.get());
    created(
        receipt(StatusCode::CREATED, written.id, written.version),
        &place,
    )
}

/// `PUT /api/boards/{board}/messages/{message}`
pub(crate) async fn edit(ask: Arc<Ask>) -> Answer {
    let said: NewText<'_> = read(&ask)?;
    must_bring_a_key(&ask)?;
    ask.may_write()?;
    let (name, id) = (ask.board_name()?, ask.id()?);
    let message = ask.app.boards.board(&name)?.message(id)?;
    let seen = seen(&ask, &name)?;
    let kind = match message.is_topic() {
        true => Kind::Topic,
        false => Kind::Reply,
    };
    let post = said.check(kind)?;
    let requester = ask.under_name(program(&ask.headers), post.author(), &said.passphrase);
    let target = Target {
        board: &name,
        id,
        requester: requester.await?,
    };
    let _look = ask.look_unless_kept(&name, seen)?;
    let edited = ask.app.boards.edit(target, seen, &post).await;
    receipt(StatusCode::OK, id, edited.map_err(failed)?)
}

/// Why a change of a message was refused, under the condition of `If-Match`.
fn failed(error: BoardError) -> Problem {
    let problem = Problem::from(error);
    match problem.theirs {
        // The condition does not hold.
        Some(_) => Problem {
            status: StatusCode::PRECONDITION_FAILED,
            ..problem
        },
        None => problem,
    }
}

/// `DELETE /api/boards/{board}/messages/{message}`
pub(crate) async fn delete(ask: Arc<Ask>) -> Answer {
    let (name, id) = target(&ask)?;
    let version = ask.app.boards.delete(of(&ask, &name, id)).await?;
    receipt(StatusCode::OK, id, version)
}

/// `POST /api/boards/{board}/messages/{message}/restore`
pub(crate) async fn restore(ask: Arc<Ask>) -> Answer {
    let (name, id) = target(&ask)?;
    let version = ask.app.boards.restore(of(&ask, &name, id)).await?;
    receipt(StatusCode::OK, id, version)
}

/// `POST /api/boards/{board}/messages/{message}/undo`: with `If-Match` only the change that the message had last in
/// that version, and once, however often it is sent.
pub(crate) async fn undo(ask: Arc<Ask>) -> Answer {
    let (name, id) = target(&ask)?;
    let boards = &ask.app.boards;
    let target = of(&ask, &name, id);
    let message = boards.board(&name)?.message(id)?;
    if !target.requester.may_change(message.owner) {
        return Err(BoardError::NotYours.into());
    }
    let has_condition = ask.headers.contains_key(header::IF_MATCH);
    let seen = has_condition.then(|| seen(&ask, &name)).transpose()?;
    let _look = ask.look_for_undo(&name, &message, seen)?;
    let last = match seen {
        Some(seen) => {
            let then = boards.board_at(&name, Moment::Version(seen)).await?;
            let change = then.message(id)?.change;
            Some(change.ok_or(BoardError::NothingToUndo)?.1)
        }
        None => None,
    };
    let undone = boards.undo(target, last).await;
    receipt(StatusCode::OK, id, undone.map_err(failed)?)
}

/// `POST /api/boards/{board}/messages/{message}/erase`
pub(crate) async fn erase(ask: Arc<Ask>) -> Answer {
    let (name, id) = target(&ask)?;
    let version = ask.app.boards.erase(of(&ask, &name, id)).await?;
    receipt(StatusCode::OK, id, version)
}

fn target(ask: &Ask) -> Result<(BoardName, NodeId), Problem> {
    must_bring_a_key(ask)?;
    ask.may_write()?;
    Ok((ask.board_name()?, ask.id()?))
}

fn of<'a>(ask: &Ask, board: &'a BoardName, id: NodeId) -> Target<'a> {
    Target {
        board,
        id,
        requester: program(&ask.headers),
    }
}

fn must_bring_a_key(ask: &Ask) -> Result<(), Problem> {
    let owner = program(&ask.headers).owner;
    owner.map(drop).ok_or_else(no_key)
}

/// Without a key nobody can later change the message, which is allowed; a key that is too short is a mistake.
fn must_bring_no_bad_key(ask: &Ask) -> Result<(), Problem> {
    match ask.headers.contains_key(header::AUTHORIZATION) {
        true => must_bring_a_key(ask),
        false => Ok(()),
    }
}

fn no_key() -> Problem {
    let sentence = "Say whose the message is: Authorization: Bearer, and the key of at least 16 characters with which it was written.";
    Problem::new(StatusCode::UNAUTHORIZED, sentence)
}

/// The JSON of a request.
pub(super) fn read<'a, T: Deserialize<'a>>(ask: &'a Ask) -> Result<T, Problem> {
    if !is_json(&ask.headers) {
        let sentence = "The body must be JSON: Content-Type: application/json.";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, sentence));
    }
    serde_json::from_slice(&ask.body).map_err(|error| {
        let status = match error.classify() {
            serde_json::error::Category::Data => StatusCode::UNPROCESSABLE_ENTITY,
            _ => StatusCode::BAD_REQUEST,
        };
        Problem::new(
            status,
            format!("The body is not what is asked for: {error}."),
        )
    })
}

/// Whether the headers say that the body is JSON.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.split(';').next().unwrap_or_default().trim() == "application/json")
}

fn token(ask: &Ask, board: &BoardName, requester: &Requester) -> Result<Option<Token>, Problem> {
    let text = token_text(ask)?;
    Ok(text.map(|text| Token::new(board, requester, text)))
}

/// What a program sends again with a request that it repeats.
pub(super) fn token_text(ask: &Ask) -> Result<Option<&str>, Problem> {
    let Some(value) = ask.headers.get("idempotency-key") else {
        return Ok(None);
    };
    let text = value
        .to_str()
        .ok()
        .filter(|text| (1..=MAX_TOKEN).contains(&text.len()));
    let text = text.ok_or_else(|| {
        let sentence = format!("An Idempotency-Key has 1 to {MAX_TOKEN} characters of ASCII.");
        Problem::new(StatusCode::BAD_REQUEST, sentence)
    })?;
    Ok(Some(text))
}

/// The version that `If-Match` names.
fn seen(ask: &Ask, name: &BoardName) -> Result<Version, Problem> {
    let newest = ask.app.boards.board(name)?.version();
    let Some(value) = ask.headers.get(header::IF_MATCH) else {
        let sentence =
            "Say which version you edit: If-Match, and the ETag with which you got the message.";
        return Err(Problem::new(StatusCode::PRECONDITION_REQUIRED, sentence));
    };
    if has(&ask.headers, &header::IF_MATCH, &format!("\"{newest}\"")) {
        return Ok(newest);
    }
    // The newest of those that it lists.
    let tags = value.to_str().unwrap_or_default().split(',');
    let versions = tags.filter_map(|tag| tag.trim().trim_matches('"').parse().ok());
    versions.max().ok_or_else(|| {
        Problem::new(
            StatusCode::PRECONDITION_FAILED,
            "If-Match names no version of this board.",
        )
    })
}

/// The answer to a change: what was changed, and the version that has it.
pub(crate) fn receipt(status: StatusCode, id: NodeId, version: Version) -> Answer {
    let version = version.to_string();
    let tag = HeaderValue::from_str(&["\"", &version, "\""].concat());
    let id = id.get();
    let mut response = json(status, &ReceiptValue { id, version })?;
    if let Ok(tag) = tag {
        response.headers_mut().insert(header::ETAG, tag);
    }
    Ok(response)
}

fn created(answer: Answer, place: &str) -> Answer {
    let mut response = answer?;
    if let Ok(place) = HeaderValue::from_str(place) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    Ok(response)
}
