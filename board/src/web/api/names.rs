//! The JSON API for protected names.

use std::sync::Arc;

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use super::super::answer::{Answer, json};
use super::super::ask::Ask;
use super::super::visitor::program;
use super::change::read;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnName {
    name: String,
    passphrase: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewPassphrase {
    name: String,
    passphrase: String,
    new: String,
}

#[derive(Serialize)]
pub(crate) struct NameValue<'a> {
    name: &'a str,
    protected: bool,
}

impl<'a> NameValue<'a> {
    fn protected(name: &'a str) -> Self {
        let protected = true;
        Self { name, protected }
    }

    pub(crate) fn free(name: &'a str) -> Self {
        let protected = false;
        Self { name, protected }
    }
}

/// `POST /api/names`
pub(crate) async fn protect(ask: Arc<Ask>) -> Answer {
    let OwnName { name, passphrase } = read(&ask)?;
    ask.may_write()?;
    ask.protect(program(&ask.headers), &name, &passphrase)
        .await?;
    told(StatusCode::CREATED, &NameValue::protected(&name))
}

/// `POST /api/names/passphrase`
pub(crate) async fn change(ask: Arc<Ask>) -> Answer {
    let asked: NewPassphrase = read(&ask)?;
    ask.may_write()?;
    ask.change_name(&asked.name, &asked.passphrase, Some(&asked.new))
        .await?;
    told(StatusCode::OK, &NameValue::protected(&asked.name))
}

/// `POST /api/names/release`
pub(crate) async fn release(ask: Arc<Ask>) -> Answer {
    let OwnName { name, passphrase } = read(&ask)?;
    ask.may_write()?;
    ask.change_name(&name, &passphrase, None).await?;
    told(StatusCode::OK, &NameValue::free(&name))
}

/// The outcome for a name.
pub(crate) fn told(status: StatusCode, value: &NameValue<'_>) -> Answer {
    json(status, value)
}
