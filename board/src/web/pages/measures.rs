//! The page of measures against a board as a whole.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;

use crate::model::{BoardInfo, By, Field, MAX_WHY, Measure};

use super::super::answer::{Answer, later, page, see};
use super::super::ask::Ask;
use super::super::pairs::Pairs;
use super::super::problem::Problem;
use super::super::views::Frame;
use super::super::visitor::random;

#[derive(Template)]
#[template(path = "measures.html")]
struct MeasuresPage {
    frame: Frame,
    board: BoardInfo,
    is_deleted: bool,
    why: String,
    notice: Option<String>,
    problem: Option<String>,
    unsure: Option<String>,
    form: String,
    token: String,
}

/// `GET /b/{board}/moderate`
pub(crate) async fn form(ask: Arc<Ask>) -> Answer {
    ask.must_moderate()?;
    show(&ask, None)
}

/// `POST /b/{board}/moderate`
pub(crate) async fn take(ask: Arc<Ask>) -> Answer {
    match measure(&ask).await {
        Ok(()) => see(&ask, "/moderate", None),
        Err(problem) => {
            // Nobody else learns what the page shows.
            ask.must_moderate()?;
            let wait = problem.retry_after;
            later(show(&ask, Some(problem)), wait)
        }
    }
}

async fn measure(ask: &Ask) -> Result<(), Problem> {
    let form = ask.form();
    let who = ask.must_moderate()?;
    ask.must_be_own_form(&form)?;
    let measure = chosen(&form)?;
    let (boards, name) = (&ask.app.boards, ask.board_name()?);
    boards
        .moderate_board(&name, measure, by(&form, &who))
        .await?;
    Ok(())
}

/// The measure that the button of a form names.
///
/// # Errors
/// 422; also if something is to be erased, and the box was not ticked.
pub(crate) fn chosen(form: &Pairs) -> Result<Measure, Problem> {
    let measure = Measure::of_message(form.text("do"));
    let measure = measure.ok_or_else(|| {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        Problem::new(status, "There is no such measure.")
    })?;
    match measure == Measure::Erase && form.text("sure") != "yes" {
        false => Ok(measure),
        true => Err(Problem::unsure()),
    }
}

/// The moderator who sends a form, with the reason and the token in it.
pub(crate) fn by<'a>(form: &'a Pairs, who: &'a str) -> By<'a> {
    By {
        who,
        why: form.text("why"),
        token: form.get("token"),
    }
}

/// The token of a form for a measure: a form that is refused keeps its token, unless that was used for something else.
pub(crate) fn token(form: &Pairs, problem: Option<&Problem>) -> String {
    let is_used = problem.is_some_and(|it| it.status == StatusCode::CONFLICT);
    let kept = form.get("token").filter(|_| !is_used);
    kept.map_or_else(random, str::to_owned)
}

/// What is to be said beside a field.
pub(crate) fn told(problem: Option<&Problem>, field: Field) -> Option<String> {
    problem?.invalid.of(field).map(str::to_owned)
}

fn show(ask: &Ask, problem: Option<Problem>) -> Answer {
    let board = ask.app.boards.board_or_deleted(&ask.board_name()?)?;
    let status = problem.as_ref().map_or(StatusCode::OK, |it| it.status);
    let template = MeasuresPage {
        frame: Frame::new(ask, "Moderate a board"),
        is_deleted: board.is_deleted(),
        board: board.info(),
        why: ask.form().text("why").to_owned(),
        token: token(&ask.form(), problem.as_ref()),
        problem: told(problem.as_ref(), Field::Why),
        unsure: told(problem.as_ref(), Field::Sure),
        notice: problem.map(|problem| problem.sentence),
        form: ask.visitor.form_token(),
    };
    page(ask, status, &template)
}

impl MeasuresPage {
    fn most(&self) -> usize {
        MAX_WHY
    }
}
