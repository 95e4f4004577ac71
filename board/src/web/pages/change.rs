//! Changing a message: the form for an edit, both texts of a conflict, and the buttons to delete, restore, undo and
//! erase.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;

use crate::model::{BoardAt, BoardError, Draft, Field, Kind, Message, Post, Target};
use crate::text::moment;

use super::super::answer::{Answer, later, page, see};
use super::super::ask::{Ask, draft};
use super::super::problem::Problem;
use super::super::views::{FormView, Frame, MessageView};
use super::history::{PieceView, pieces};
use super::measures::told;

#[derive(Template)]
#[template(path = "edit.html")]
struct EditPage {
    frame: Frame,
    form: FormView,
    id: u64,
    /// When the last change was made, if there is one that can be undone.
    last: Option<String>,
    /// What is to be said beside the box of an erasure.
    unsure: Option<String>,
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
    show(&ask, &board, &message, (form, None))
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
            show(&ask, &board, &message, (form, Some(problem)))
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
    let post = draft(&form).check(kind).map_err(BoardError::from)?;
    let seen = form.text("seen").parse().map_err(|_| Problem::forged())?;
    let requester = ask.visitor.requester();
    let requester = ask.under_name(requester, post.author(), form.text("passphrase"));
    let target = Target {
        board: &name,
        id,
        requester: requester.await?,
    };
    let _look = ask.look_unless_kept(&name, seen)?;
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

/// `POST /b/{board}/{message}/undo`: takes back the change that the page showed as the last one.
pub(crate) async fn undo(ask: Arc<Ask>) -> Answer {
    let name = target_of_form(&ask)?;
    let form = ask.form();
    let last = moment::parse_exact(form.text("last"));
    let target = target(&ask, &name)?;
    let message = ask.app.boards.board(&name)?.message(target.id)?;
    let look = ask.look_for_undo(&name, &message, None)?;
    let undone = ask.app.boards.undo(target, last).await;
    drop(look);
    match undone {
        Ok(_) => back(&ask),
        Err(BoardError::Stale(_)) => {
            let sentence = "Somebody has changed this message since you opened the page, so nothing was taken back. \
                 Below is what it says now.";
            show_again(&ask, Problem::new(StatusCode::CONFLICT, sentence))
        }
        Err(error) => Err(error.into()),
    }
}

/// `POST /b/{board}/{message}/erase`
pub(crate) async fn erase(ask: Arc<Ask>) -> Answer {
    let name = target_of_form(&ask)?;
    if ask.form().text("sure") != "yes" {
        return show_again(&ask, Problem::unsure());
    }
    ask.app.boards.erase(target(&ask, &name)?).await?;
    back(&ask)
}

/// The page with what the message says now, and why something else than an edit was not done.
fn show_again(ask: &Ask, problem: Problem) -> Answer {
    let board = ask.app.boards.board(&ask.board_name()?)?;
    let message = board.message(ask.id()?)?;
    let form = FormView {
        draft: Draft::of(must_change(ask, &message)?),
        notice: Some(problem.sentence.clone()),
        ..empty(ask, &board, &message)
    };
    show(ask, &board, &message, (form, Some(problem)))
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
        return Err(BoardError::NotYours.into());
    }
    message.post().ok_or_else(|| BoardError::Gone.into())
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
    (mut form, problem): (FormView, Option<Problem>),
) -> Answer {
    let status = problem.as_ref().map_or(StatusCode::OK, |it| it.status);
    let wait = problem.as_ref().and_then(|problem| problem.retry_after);
    let unsure = told(problem.as_ref(), Field::Sure);
    let theirs = problem.and_then(|problem| problem.theirs).map(|theirs| {
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
        last: message.change.map(|(_, when)| moment::machine_exact(when)),
        unsure,
        notice: form.notice.take_if(|_| theirs.is_some()),
        form,
        theirs,
    };
    later(page(ask, status, &template), wait)
}
