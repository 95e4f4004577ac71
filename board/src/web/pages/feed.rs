//! The newest messages of a board as an Atom feed (RFC 4287). Deleted and erased messages are not in it.
//!
//! Its ids are made of the board's own, so they stay the same under whatever address the board is read.

use std::sync::Arc;

use askama::Template;
use axum::http::{StatusCode, header};

use crate::model::{BoardAt, Message, hash};
use crate::text::markdown;
use crate::text::moment::machine;

use super::super::answer::{Answer, fixed, tagged};
use super::super::ask::Ask;
use super::super::problem::Problem;
use super::super::visitor::hex;

/// How many messages a feed has.
const MESSAGES: usize = 20;

#[derive(Template)]
#[template(path = "feed.xml", escape = "html")]
struct Feed {
    site: String,
    title: String,
    id: String,
    /// The address of the board.
    base: String,
    updated: String,
    entries: Vec<EntryView>,
}

struct EntryView {
    /// The number of the message, and what names it for ever.
    number: u64,
    id: String,
    title: String,
    author: String,
    published: String,
    updated: String,
    html: String,
}

/// `GET /b/{board}/feed`
pub(crate) async fn show(ask: Arc<Ask>) -> Answer {
    let board = ask.app.boards.board(&ask.board_name()?)?;
    tagged(&ask.headers, &format!("\"{}\"", board.version()), || {
        let latest = board.latest(MESSAGES);
        let feed = Feed {
            site: ask.app.config.title.clone(),
            title: board.title().to_owned(),
            id: urn(&board, ""),
            base: format!("{}/b/{}", origin(&ask), board.name()),
            updated: machine(board.time()),
            entries: latest
                .iter()
                .filter_map(|message| entry(&board, message))
                .collect(),
        };
        let text = feed.render().map_err(|error| {
            let sentence = format!("The feed could not be made: {error}.");
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, sentence)
        })?;
        Ok(fixed(
            StatusCode::OK,
            "application/atom+xml; charset=utf-8",
            text,
        ))
    })
}

/// Under which address the reader knows the board.
fn origin(ask: &Ask) -> String {
    if let Some(origin) = &ask.app.config.origin {
        return origin.as_str().to_owned();
    }
    let host = ask.headers.get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok());
    let scheme = match ask.client.is_secure {
        true => "https",
        false => "http",
    };
    format!("{scheme}://{}", host.unwrap_or("localhost"))
}

/// A name of the board, or of one of its messages, which no other feed has: a UUID of version 8 (RFC 9562).
fn urn(board: &BoardAt, message: &str) -> String {
    let mut bytes = hash("feed", &[board.id().as_bytes(), message.as_bytes()]);
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let digits = hex(&bytes);
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| &digits[range]);
    format!("urn:uuid:{}", parts.join("-"))
}

fn entry(board: &BoardAt, message: &Message) -> Option<EntryView> {
    let post = message.post()?;
    let title = match post.title() {
        "" => format!("An answer by {} in {}", post.author(), board.title()),
        title => title.to_owned(),
    };
    Some(EntryView {
        number: message.id.get(),
        id: urn(board, &message.id.get().to_string()),
        title,
        author: post.author().to_owned(),
        published: machine(message.time),
        updated: machine(message.edited().unwrap_or(message.time)),
        html: markdown::to_html(post.text()),
    })
}
