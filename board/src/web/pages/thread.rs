//! A message with the answers below it, and the form for another answer.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;

use crate::model::{Body, Shown};

use super::super::answer::{Answer, later, page, tagged_page};
use super::super::ask::Ask;
use super::super::paging::PagesView;
use super::super::problem::Problem;
use super::super::views::{FormView, Frame, MessageView, tag, title_of};

/// How many bytes of all answers a page shows, so that it stays small.
const SHOWN: usize = 14_000;
/// How many bytes of an answer it shows in any case.
const LEAST: usize = 300;

#[derive(Template)]
#[template(path = "thread.html")]
struct ThreadPage {
    frame: Frame,
    message: MessageView,
    /// The number and the title of the topic, if the message did not begin it.
    topic: Option<(u64, String)>,
    answers: Vec<AnswerView>,
    pages: PagesView,
    /// `None` if nobody can answer.
    form: Option<FormView>,
    /// What a message cannot be restored without.
    own_form: String,
    can_restore: bool,
}

struct AnswerView {
    message: MessageView,
    unshown: usize,
    /// Whether a list of answers begins with it.
    opens: bool,
    /// Whether no answer below it follows.
    ends: bool,
    /// How many lists end with it.
    closes: usize,
    level: usize,
}

/// `GET /b/{board}/{message}`
pub(crate) async fn show(ask: Arc<Ask>) -> Answer {
    let board = ask.board().await?;
    // The status also tells that the message is gone; the answers below it are still there.
    let status = match board.message(ask.id()?)?.body {
        Body::Said(_) => StatusCode::OK,
        Body::Deleted(_) | Body::Erased(_) => StatusCode::GONE,
    };
    ask.page()?;
    tagged_page(&ask, &tag(&board, ask.now), || {
        show_with(&ask, &board, status, None)
    })
}

/// The page with a form that comes back, or an empty one.
pub(crate) fn show_with(
    ask: &Ask,
    board: &crate::model::BoardAt,
    status: StatusCode,
    form: Option<FormView>,
) -> Answer {
    let id = ask.id()?;
    let thread = board.thread(id, ask.page()?)?;
    let title = match &thread.topic {
        Some(topic) => format!("Answer in “{}”", title_of(topic)),
        None => title_of(&thread.head),
    };
    let can_answer = thread.head.post().is_some() && !board.is_past();
    let is_refused = form.is_some();
    let form = form.or_else(|| {
        let action = format!("/b/{}/{}/answer", board.name(), id.get());
        can_answer.then(|| FormView {
            label: "Your answer",
            verb: "Answer",
            ..FormView::new(ask, action)
        })
    });
    let can_restore = matches!(thread.head.body, Body::Deleted(_)) && !board.is_past();
    let message = MessageView::new(ask, &thread.head, usize::MAX);
    let path = format!("/b/{}/{}", board.name(), id.get());
    let refused_at = is_refused.then(|| path.clone());
    let template = ThreadPage {
        frame: Frame {
            page: refused_at,
            ..Frame::of_board(ask, title, board)
        },
        can_restore: can_restore && message.is_own,
        message,
        topic: thread.topic.map(|topic| (topic.id.get(), title_of(&topic))),
        answers: answers(ask, &thread.answers),
        // Answers stay where they are, so in the present their pages need no version.
        pages: match board.is_past() {
            true => PagesView::in_version(path, thread.pages, ("at", board.version())),
            false => PagesView::of_newest(path, thread.pages),
        },
        form,
        own_form: ask.visitor.form_token(),
    };
    page(ask, status, &template)
}

fn answers(ask: &Ask, shown: &[Shown]) -> Vec<AnswerView> {
    let mut room = SHOWN;
    let mut views = Vec::with_capacity(shown.len());
    for (at, answer) in shown.iter().enumerate() {
        let before = at.checked_sub(1).map_or(0, |before| shown[before].level);
        let after = shown.get(at + 1).map_or(0, |after| after.level);
        let length = answer.message.post().map_or(0, |post| post.text().len());
        views.push(AnswerView {
            message: MessageView::new(ask, &answer.message, room.max(LEAST)),
            unshown: answer.unshown,
            opens: answer.level > before,
            ends: after <= answer.level,
            closes: answer.level.saturating_sub(after),
            level: answer.level,
        });
        room = room.saturating_sub(length);
    }
    views
}

/// The page for what happened to an answer that was not taken.
pub(crate) async fn show_refused(ask: &Ask, form: FormView, problem: Problem) -> Answer {
    let board = ask.board().await?;
    later(
        show_with(ask, &board, problem.status, Some(form)),
        problem.retry_after,
    )
}
