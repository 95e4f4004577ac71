//! Changing a message: the form for an edit, both texts of a conflict, and the buttons to delete, restore, undo and
//! erase.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;

use crate::model::{BoardAt, Draft, Kind, Message, Post, Target};

use super::super::answer::{Answer, later, page, see};
use super::super::ask::{Ask, draft};
use super::super::problem::Problem;
use super::super::views::{FormView, Frame, MessageView};
use super::history::{PieceView, pieces};

#[derive(Template)]
#[template(path = "edit.html")]
struct EditPage {
    frame: Frame,
    form: FormView,
    id: u64,
    can_undo: bool,
    /// After a conflict: what the message says now, and how what was written differs from it.
    theirs: Option<(MessageView, Vec<PieceView>)>,
    /// What is to be said above both texts of a conflict.
    notice: Option<String>,
}

/// `GET /b/{board}/{message}/edit`
pub(crate) async fn form(ask: Arc<Ask>) -> Answer {
    let board = ask.app.boards.board(&ask.board_name()?)?;
    let message = board.message(ask.id()?)?;
    let post = must_change(&ask, &message)?;
    let draft = Draft::of(post);
    let form = FormView {
        draft,
        ..empty(&ask, &board, &message)
    };
    show(&ask, &board, &message, (StatusCode::OK, form, None))
}

/// `POST /b/{board}/{message}/edit`
pub(crate) async fn edit(ask: Arc<Ask>) -> Answer {
    let (name, id) = (ask.board_name()?, ask.id()?);
    let form = ask.form();
    match change(&ask).await {
        Ok(()) => see(&ask, &format!("/b/{name}/{}", id.get()), None),
        Err(problem) => {
            let board = ask.app.boards.board(&name)?;
            // The message may be gone by now, or belong to somebody else; the visitor's text comes back
            // all the same.
            let message = board.message(id)?;
            // After a conflict the next attempt begins from the present text. Other mistakes do not change that.
            let seen = form
                .get("seen")
                .filter(|_| problem.theirs.is_none())
                .map(str::to_owned);
            let empty = empty(&ask, &board, &message);
            let form = FormView {
                draft: draft(&form),
                invalid: problem.invalid.clone(),
                notice: Some(problem.sentence.clone()),
                seen: seen.or(empty.seen.clone()),
                ..empty
            };
            let shown = (problem.status, form, problem.theirs);
            later(show(&ask, &board, &message, shown), problem.retry_after)
        }
    }
}

async fn change(ask: &Ask) -> Result<(), Problem> {
    let form = ask.form();
    ask.must_be_own_form(&form)?;
    ask.may_write()?;
    let (name, id) = (ask.board_name()?, ask.id()?);
    let message = ask.app.boards.board(&name)?.message(id)?;
    let kind = kind(&message);
    let post = draft(&form)
        .check(kind)
        .map_err(crate::model::BoardError::from)?;
    let seen = form.text("seen").parse().map_err(|_| Problem::forged())?;
    let requester = ask.visitor.requester();
    let requester = ask.under_name(requester, post.author(), form.text("passphrase"));
    let target = Target {
        board: &name,
        id,
        requester: requester.await?,
    };
    ask.app.boards.edit(target, seen, &post).await?;
    Ok(())
}

/// `POST /b/{board}/{message}/delete`
pub(crate) async fn delete(ask: Arc<Ask>) -> Answer {
    let name = target_of_form(&ask)?;
    ask.app.boards.delete(target(&ask, &name)?).await?;
    back(&ask)
}

/// `POST /b/{board}/{message}/restore`
pub(crate) async fn restore(ask: Arc<Ask>) -> Answer {
    let name = target_of_form(&ask)?;
    ask.app.boards.restore(target(&ask, &name)?).await?;
    back(&ask)
}

/// `POST /b/{board}/{message}/undo`
pub(crate) async fn undo(ask: Arc<Ask>) -> Answer {
    let name = target_of_form(&ask)?;
    ask.app.boards.undo(target(&ask, &name)?).await?;
    back(&ask)
}

/// `POST /b/{board}/{message}/erase`
pub(crate) async fn erase(ask: Arc<Ask>) -> Answer {
    let name = target_of_form(&ask)?;
    if ask.form().text("sure") != "yes" {
        let sentence =
            "Tick the box, because what is erased does not come back. Nothing was erased.";
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, sentence));
    }
    ask.app.boards.erase(target(&ask, &name)?).await?;
    back(&ask)
}

fn target_of_form(ask: &Ask) -> Result<crate::model::BoardName, Problem> {
    ask.must_be_own_form(&ask.form())?;
    ask.may_write()?;
    ask.board_name()
}

fn target<'a>(ask: &Ask, board: &'a crate::model::BoardName) -> Result<Target<'a>, Problem> {
    Ok(Target {
        board,
        id: ask.id()?,
        requester: ask.visitor.requester(),
    })
}

fn back(ask: &Ask) -> Answer {
    see(
        ask,
        &format!("/b/{}/{}", ask.board_name()?, ask.id()?.get()),
        None,
    )
}

/// What a message says, if this visitor may change it.
fn must_change<'a>(ask: &Ask, message: &'a Message) -> Result<&'a Post, Problem> {
    if !ask.visitor.requester().may_change(message.owner) {
        return Err(crate::model::BoardError::NotYours.into());
    }
    message
        .post()
        .ok_or_else(|| crate::model::BoardError::Gone.into())
}

fn kind(message: &Message) -> Kind {
    match message.is_topic() {
        true => Kind::Topic,
        false => Kind::Reply,
    }
}

fn empty(ask: &Ask, board: &BoardAt, message: &Message) -> FormView {
    FormView {
        has_title: message.is_topic(),
        verb: "Save",
        seen: Some(board.version().to_string()),
        ..FormView::new(
            ask,
            format!("/b/{}/{}/edit", board.name(), message.id.get()),
        )
    }
}

fn show(
    ask: &Ask,
    board: &BoardAt,
    message: &Message,
    (status, mut form, theirs): (StatusCode, FormView, Option<Box<Message>>),
) -> Answer {
    let theirs = theirs.map(|theirs| {
        let text = theirs.post().map(Post::text).unwrap_or_default();
        let mine = form.draft.text.replace("\r\n", "\n");
        (
            MessageView::new(ask, &theirs, usize::MAX),
            pieces(text, &mine),
        )
    });
    let template = EditPage {
        frame: Frame::of_board(ask, "Change a message", board),
        id: message.id.get(),
        can_undo: message.change.is_some(),
        notice: form.notice.take_if(|_| theirs.is_some()),
        form,
        theirs,
    };
    page(ask, status, &template)
}
