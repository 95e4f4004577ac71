//! The history of a message: each state with what was changed, word by word.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;

use crate::model::{Piece, Post, State, difference};
use crate::text::moment::Stamp;

use super::super::answer::{Answer, page, tagged_page};
use super::super::ask::Ask;
use super::super::views::{Frame, tag, told};

#[derive(Template)]
#[template(path = "history.html")]
struct HistoryPage {
    frame: Frame,
    id: u64,
    states: Vec<StateView>,
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
    let board = ask.app.boards.board(&name)?;
    let look = ask.look()?;
    let states = ask.app.boards.history(&name, id).await?;
    drop(look);
    tagged_page(&ask, &tag(&board, ask.now), || {
        let before = states.iter().skip(1).map(Some).chain([None]);
        let views = states
            .iter()
            .zip(before)
            .map(|(state, before)| view(&ask, state, before));
        let template = HistoryPage {
            frame: Frame::of_board(&ask, "History of a message", &board),
            id: id.get(),
            states: views.collect(),
        };
        page(&ask, StatusCode::OK, &template)
    })
}

fn view(ask: &Ask, state: &State, before: Option<&State>) -> StateView {
    let part = |of: fn(&Post) -> &str| {
        let new = state.post.as_ref().map(of).unwrap_or_default();
        let old = before.and_then(|before| before.post.as_ref()).map(of);
        // The first state has nothing to differ from.
        pieces(old.unwrap_or(new), new)
    };
    StateView {
        told: told(state.deed),
        time: Stamp::new(state.time, ask.now),
        version: state.version.to_string(),
        number: state.version.number,
        is_erased: state.post.is_none(),
        author: part(Post::author),
        title: part(Post::title),
        text: part(Post::text),
    }
}
