//! The JSON API for moderators: a session, measures, and the log.

use std::sync::Arc;

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use crate::model::{By, Entry, Measure};
use crate::text::moment::machine;

use super::super::answer::{Answer, json};
use super::super::ask::Ask;
use super::super::problem::Problem;
use super::change::{read, receipt, token_text};
use super::names::{NameValue, told};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignIn {
    name: String,
    passphrase: String,
}

#[derive(Serialize)]
struct SessionValue {
    key: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewMeasure {
    measure: String,
    why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Freed {
    name: String,
    why: String,
}

#[derive(Serialize)]
struct MadeValue {
    version: String,
}

#[derive(Serialize)]
struct LogValue {
    page: usize,
    pages: usize,
    entries: Vec<EntryValue>,
}

#[derive(Serialize)]
struct EntryValue {
    time: String,
    who: String,
    measure: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// For a measure against a name, `board` is empty and `message` is missing; for one against a board, only `message`
    /// is missing.
    board: String,
    message: Option<u64>,
    why: String,
    outcome: Option<String>,
}

/// `POST /api/moderators`
pub(crate) async fn sign_in(ask: Arc<Ask>) -> Answer {
    let SignIn { name, passphrase } = read(&ask)?;
    let key = ask.sign_in(&name, &passphrase).await?;
    json(StatusCode::CREATED, &SessionValue { key })
}

/// `POST /api/boards/{board}/messages/{message}/moderate`
pub(crate) async fn take(ask: Arc<Ask>) -> Answer {
    let new: NewMeasure = read(&ask)?;
    let who = ask.must_moderate_by_key()?;
    let measure = measure(&new)?;
    let (name, id) = (ask.board_name()?, ask.id()?);
    let by = by(&ask, &who, &new.why)?;
    let version = ask.app.boards.moderate((&name, id), measure, by).await?;
    receipt(StatusCode::OK, id, version)
}

/// `POST /api/boards/{board}/moderate`
pub(crate) async fn take_board(ask: Arc<Ask>) -> Answer {
    let new: NewMeasure = read(&ask)?;
    let who = ask.must_moderate_by_key()?;
    let measure = measure(&new)?;
    let by = by(&ask, &who, &new.why)?;
    let (boards, name) = (&ask.app.boards, ask.board_name()?);
    let version = boards.moderate_board(&name, measure, by).await?;
    let version = version.to_string();
    json(StatusCode::OK, &MadeValue { version })
}

fn by<'a>(ask: &'a Ask, who: &'a str, why: &'a str) -> Result<By<'a>, Problem> {
    let token = token_text(ask)?;
    Ok(By { who, why, token })
}

fn measure(new: &NewMeasure) -> Result<Measure, Problem> {
    Measure::of_message(&new.measure).ok_or_else(|| {
        let sentence = "A measure is delete, restore or erase.";
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, sentence)
    })
}

/// `POST /api/names/free`
pub(crate) async fn free(ask: Arc<Ask>) -> Answer {
    let Freed { name, why } = read(&ask)?;
    let who = ask.must_moderate_by_key()?;
    ask.free_name(&name, by(&ask, &who, &why)?).await?;
    told(StatusCode::OK, &NameValue::free(&name))
}

/// `GET /api/audit`
pub(crate) async fn audit(ask: Arc<Ask>) -> Answer {
    ask.must_moderate_by_key()?;
    let (entries, pages) = ask.app.boards.audit(ask.page()?)?;
    let value = LogValue {
        page: pages.number,
        pages: pages.count,
        entries: entries.into_iter().map(value).collect(),
    };
    json(StatusCode::OK, &value)
}

fn value(entry: Entry) -> EntryValue {
    EntryValue {
        time: machine(entry.time),
        who: entry.who,
        measure: entry.measure.map(Measure::word),
        name: entry.name,
        board: entry.board,
        message: entry.message,
        why: entry.why,
        outcome: entry.outcome,
    }
}
