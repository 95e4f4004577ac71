//! The history of a message: each state with what was changed, word by word.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;

use crate::model::{Piece, Post, State, difference};
use crate::text::moment::Stamp;

use super::super::answer::{Answer, known_page, page, page_tag, with_tag};
use super::super::ask::Ask;
use super::super::views::{Frame, tag, told};

/// How many states are on a page, and how many bytes of all their texts, so that it stays small.
const STATES: usize = 10;
const SHOWN: usize = 20_000;
/// What stands around a piece of a difference: a tag at both ends.
const TAGS: usize = 11;

#[derive(Template)]
#[template(path = "history.html")]
struct HistoryPage {
    frame: Frame,
    id: u64,
    states: Vec<StateView>,
    /// Whether it begins with a state that is not the newest.
    is_later: bool,
    /// The version with which it continues.
    older: Option<String>,
}

struct StateView {
    told: &'static str,
    time: Stamp,
    /// The version of the board in which it was so.
    version: String,
    number: u64,
    is_erased: bool,
    author: Vec<PieceView>,
    title: Vec<PieceView>,
    text: Vec<PieceView>,
    /// Whether only the beginning of the text is there.
    is_cut: bool,
}

/// A part of a difference: `kind` is empty, `del` or `ins`.
pub(crate) struct PieceView {
    pub(crate) kind: &'static str,
    pub(crate) text: String,
}

/// The difference of two texts.
pub(crate) fn pieces(old: &str, new: &str) -> Vec<PieceView> {
    let view = |piece: Piece<'_>| {
        let (kind, text) = match piece {
            Piece::Same(text) => ("", text),
            Piece::Gone(text) => ("del", text),
            Piece::New(text) => ("ins", text),
        };
        PieceView {
            kind,
            text: text.to_owned(),
        }
    };
    difference(old, new).into_iter().map(view).collect()
}

/// `GET /b/{board}/{message}/history`
pub(crate) async fn show(ask: Arc<Ask>) -> Answer {
    let (name, id) = (ask.board_name()?, ask.id()?);
    let boards = &ask.app.boards;
    let board = boards.board(&name)?;
    let from = ask.from()?;
    let place = from.map(|from| from.to_string()).unwrap_or_default();
    let tag = page_tag(&ask, &format!("{}-{place}", tag(&board, ask.now)));
    if let Some(known) = known_page(&ask, &tag) {
        return Ok(known);
    }
    let look = ask.look()?;
    let history = boards.history(&name, id, (from, STATES)).await?;
    drop(look);
    let states = &history.states;
    let before = states.iter().skip(1).map(Some);
    let before = before.chain([history.older.as_ref()]);
    let room = SHOWN / states.len().max(1);
    let views = states.iter().zip(before);
    let template = HistoryPage {
        frame: Frame::of_board(&ask, "History of a message", &board),
        id: id.get(),
        states: views.map(|it| view(&ask, it, room)).collect(),
        is_later: from.is_some(),
        older: history.older.map(|older| older.version.to_string()),
    };
    Ok(with_tag(page(&ask, StatusCode::OK, &template)?, &tag))
}

fn view(ask: &Ask, (state, before): (&State, Option<&State>), room: usize) -> StateView {
    let part = |of: fn(&Post) -> &str| {
        let new = state.post.as_ref().map(of).unwrap_or_default();
        let old = before.and_then(|before| before.post.as_ref()).map(of);
        // The first state has nothing to differ from.
        pieces(old.unwrap_or(new), new)
    };
    let mut text = part(Post::text);
    let is_cut = cut(&mut text, room);
    StateView {
        told: told(state.deed),
        time: Stamp::new(state.time, ask.now),
        version: state.version.to_string(),
        number: state.version.number,
        is_erased: state.post.is_none(),
        author: part(Post::author),
        title: part(Post::title),
        text,
        is_cut,
    }
}

/// Cuts a difference off behind this many bytes of the page. Returns whether it was longer.
fn cut(pieces: &mut Vec<PieceView>, mut room: usize) -> bool {
    for (at, piece) in pieces.iter_mut().enumerate() {
        let Some(left) = room.checked_sub(piece.text.len() + TAGS) else {
            let end = (0..=room.saturating_sub(TAGS).min(piece.text.len()))
                .rfind(|at| piece.text.is_char_boundary(*at));
            piece.text.truncate(end.unwrap_or_default());
            pieces.truncate(at + 1);
            return true;
        };
        room = left;
    }
    false
}
