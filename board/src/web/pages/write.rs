//! New topics and answers: the forms, and their outcomes. A refused form comes back with everything that was written.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use weald::forest::NodeId;

use crate::model::{ANSWERS, BoardAt, Kind, NewMessage, Token, one_line};

use super::super::answer::{Answer, later, page, see};
use super::super::ask::{Ask, draft};
use super::super::problem::Problem;
use super::super::views::{FormView, Frame};
use super::super::visitor::author_cookie;
use super::thread;

#[derive(Template)]
#[template(path = "write.html")]
struct WritePage {
    frame: Frame,
    form: FormView,
}

/// `GET /b/{board}/write`
pub(crate) async fn form(ask: Arc<Ask>) -> Answer {
    let board = ask.app.boards.board(&ask.board_name()?)?;
    let form = topic_form(&ask, &board);
    show_form(&ask, &board, StatusCode::OK, form)
}

/// `POST /b/{board}/write`
pub(crate) async fn topic(ask: Arc<Ask>) -> Answer {
    match write(&ask, None).await {
        Ok(id) => see(
            &ask,
            &format!("/b/{}/{}", ask.board_name()?, id.get()),
            remembered(&ask),
        ),
        Err(problem) => {
            let board = ask.app.boards.board(&ask.board_name()?)?;
            let form = refused(&ask, topic_form(&ask, &board), &problem);
            later(
                show_form(&ask, &board, problem.status, form),
                problem.retry_after,
            )
        }
    }
}

/// `POST /b/{board}/{message}/answer`
pub(crate) async fn answer(ask: Arc<Ask>) -> Answer {
    let (name, above) = (ask.board_name()?, ask.id()?);
    match write(&ask, Some(above)).await {
        Ok(id) => {
            let message = ask.app.boards.board(&name)?.message(id)?;
            // An answer to a very deep message stands beside that message.
            let above = message.parent.unwrap_or(above);
            let answers = ask.app.boards.board(&name)?.message(above)?.replies;
            let last = match answers.div_ceil(ANSWERS) {
                0 | 1 => String::new(),
                last => format!("?page={last}"),
            };
            see(
                &ask,
                &format!("/b/{name}/{}{last}#m{}", above.get(), id.get()),
                remembered(&ask),
            )
        }
        Err(problem) => {
            let action = format!("/b/{name}/{}/answer", above.get());
            let form = FormView {
                label: "Your answer",
                verb: "Answer",
                ..FormView::new(&ask, action)
            };
            let form = refused(&ask, form, &problem);
            thread::show_refused(&ask, form, problem).await
        }
    }
}

async fn write(ask: &Ask, parent: Option<NodeId>) -> Result<NodeId, Problem> {
    let form = ask.form();
    ask.must_be_own_form(&form)?;
    ask.may_write()?;
    let board = ask.board_name()?;
    let kind = match parent {
        None => Kind::Topic,
        Some(_) => Kind::Reply,
    };
    let post = draft(&form)
        .check(kind)
        .map_err(crate::model::BoardError::from)?;
    let requester = ask.visitor.requester();
    let requester = ask.under_name(requester, post.author(), form.text("passphrase"));
    let requester = requester.await?;
    let token = form
        .get("token")
        .map(|token| Token::new(&board, &requester, token));
    let new = NewMessage {
        parent,
        post,
        requester,
        token,
    };
    Ok(ask.app.boards.write(&board, new).await?.id)
}

fn topic_form(ask: &Ask, board: &BoardAt) -> FormView {
    FormView {
        has_title: true,
        verb: "Begin the topic",
        ..FormView::new(ask, format!("/b/{}/write", board.name()))
    }
}

/// The form as it came, with what is wrong with it. It keeps its token, unless that was used for something else.
fn refused(ask: &Ask, empty: FormView, problem: &Problem) -> FormView {
    let form = ask.form();
    let is_used = matches!(problem.status, StatusCode::CONFLICT | StatusCode::GONE);
    let kept = form.get("token").filter(|_| !is_used).map(str::to_owned);
    FormView {
        draft: draft(&form),
        invalid: problem.invalid.clone(),
        notice: Some(problem.sentence.clone()),
        token: kept.unwrap_or_else(|| empty.token.clone()),
        ..empty
    }
}

fn show_form(ask: &Ask, board: &BoardAt, status: StatusCode, form: FormView) -> Answer {
    let frame = Frame::of_board(ask, "New topic", board);
    page(ask, status, &WritePage { frame, form })
}

fn remembered(ask: &Ask) -> Option<String> {
    let form = ask.form();
    // As it stands in the message, and so never too long for a cookie.
    let author = one_line(form.text("author"));
    (author != ask.visitor.author()).then(|| author_cookie(&author, ask.client.is_secure))
}
