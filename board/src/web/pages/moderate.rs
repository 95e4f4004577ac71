//! The pages of moderators: signing in, the log of what they did, and measures against one message.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;

use crate::model::{Body, Entry, Field, Invalid, MAX_WHY, Measure};
use crate::text::moment::Stamp;

use super::super::answer::{Answer, later, page, see};
use super::super::ask::Ask;
use super::super::paging::PagesView;
use super::super::problem::Problem;
use super::super::views::{Frame, MessageView};
use super::measures::{by, chosen, token, told};

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    frame: Frame,
    name: String,
    notice: Option<String>,
    invalid: Invalid,
    form: String,
}

#[derive(Template)]
#[template(path = "log.html")]
struct LogPage {
    frame: Frame,
    entries: Vec<MeasureView>,
    pages: PagesView,
    form: String,
    /// The form that frees a name, as it came back.
    name: String,
    why: String,
    token: String,
    notice: Option<String>,
    invalid: Invalid,
}

struct MeasureView {
    time: Stamp,
    who: String,
    measure: &'static str,
    /// The name that was freed; without one it was about a message.
    name: Option<String>,
    board: String,
    message: Option<u64>,
    why: String,
    outcome: String,
}

#[derive(Template)]
#[template(path = "moderate.html")]
struct ModeratePage {
    frame: Frame,
    message: MessageView,
    is_deleted: bool,
    is_erased: bool,
    why: String,
    notice: Option<String>,
    problem: Option<String>,
    unsure: Option<String>,
    form: String,
    token: String,
}

/// `GET /moderate`: the log, or the form to sign in.
pub(crate) async fn show(ask: Arc<Ask>) -> Answer {
    match ask.must_moderate() {
        Ok(_) => show_log(&ask, None),
        Err(problem) if problem.status == StatusCode::FORBIDDEN => show_sign_in(&ask, None),
        Err(problem) => Err(problem),
    }
}

/// `POST /moderate`: signs in.
pub(crate) async fn sign_in(ask: Arc<Ask>) -> Answer {
    let form = ask.form();
    let session = async {
        ask.must_be_own_form(&form)?;
        let (name, passphrase) = (form.text("author"), form.text("passphrase"));
        ask.sign_in(name, passphrase).await
    };
    match session.await {
        Ok(secret) => see(&ask, "/moderate", Some(ask.session_cookie(Some(&secret)))),
        Err(problem) if problem.status == StatusCode::NOT_FOUND => Err(problem),
        Err(problem) => {
            let wait = problem.retry_after;
            later(show_sign_in(&ask, Some(problem)), wait)
        }
    }
}

/// `POST /moderate/sign-out`
pub(crate) async fn sign_out(ask: Arc<Ask>) -> Answer {
    ask.must_be_own_form(&ask.form())?;
    ask.sign_out();
    see(&ask, "/", Some(ask.session_cookie(None)))
}

/// `POST /moderate/names`: frees a protected name.
pub(crate) async fn free(ask: Arc<Ask>) -> Answer {
    let form = ask.form();
    let who = ask.must_moderate()?;
    let freed = async {
        ask.must_be_own_form(&form)?;
        ask.free_name(form.text("name"), by(&form, &who)).await
    };
    match freed.await {
        Ok(()) => see(&ask, "/moderate", None),
        Err(problem) => {
            let wait = problem.retry_after;
            later(show_log(&ask, Some(problem)), wait)
        }
    }
}

/// `GET /b/{board}/{message}/moderate`
pub(crate) async fn form(ask: Arc<Ask>) -> Answer {
    ask.must_moderate()?;
    show_measures(&ask, None)
}

/// `POST /b/{board}/{message}/moderate`
pub(crate) async fn take(ask: Arc<Ask>) -> Answer {
    let (name, id) = (ask.board_name()?, ask.id()?);
    match measure(&ask).await {
        Ok(()) => see(&ask, &format!("/b/{name}/{}", id.get()), None),
        Err(problem) => {
            // Nobody else learns what the page shows.
            ask.must_moderate()?;
            let wait = problem.retry_after;
            later(show_measures(&ask, Some(problem)), wait)
        }
    }
}

async fn measure(ask: &Ask) -> Result<(), Problem> {
    let form = ask.form();
    let who = ask.must_moderate()?;
    ask.must_be_own_form(&form)?;
    let measure = chosen(&form)?;
    let (name, id) = (ask.board_name()?, ask.id()?);
    let boards = &ask.app.boards;
    boards
        .moderate((&name, id), measure, by(&form, &who))
        .await?;
    Ok(())
}

fn show_sign_in(ask: &Ask, problem: Option<Problem>) -> Answer {
    let status = problem.as_ref().map_or(StatusCode::OK, |it| it.status);
    let (notice, invalid) = problem.map_or((None, Invalid::default()), |problem| {
        (Some(problem.sentence), problem.invalid)
    });
    let template = SignInPage {
        frame: Frame::new(ask, "Sign in as a moderator"),
        name: ask.form().text("author").to_owned(),
        notice,
        invalid,
        form: ask.visitor.form_token(),
    };
    page(ask, status, &template)
}

impl SignInPage {
    fn problem(&self, field: &str) -> Option<&str> {
        let all = [Field::Author, Field::Passphrase];
        let field = all.into_iter().find(|it| it.name() == field)?;
        self.invalid.of(field)
    }
}

fn show_log(ask: &Ask, problem: Option<Problem>) -> Answer {
    let (entries, pages) = ask.app.boards.audit(ask.page()?)?;
    let status = problem.as_ref().map_or(StatusCode::OK, |it| it.status);
    let form = ask.form();
    let token = token(&form, problem.as_ref());
    let (notice, invalid) = problem.map_or((None, Invalid::default()), |problem| {
        (Some(problem.sentence), problem.invalid)
    });
    let template = LogPage {
        frame: Frame::new(ask, "Log of the moderators"),
        entries: entries.into_iter().map(|it| view(ask, it)).collect(),
        pages: PagesView::of_newest("/moderate".to_owned(), pages),
        form: ask.visitor.form_token(),
        name: form.text("name").to_owned(),
        why: form.text("why").to_owned(),
        token,
        notice,
        invalid,
    };
    page(ask, status, &template)
}

impl LogPage {
    fn problem(&self) -> Option<&str> {
        self.invalid.of(Field::Why)
    }

    fn most(&self) -> usize {
        MAX_WHY
    }
}

fn view(ask: &Ask, entry: Entry) -> MeasureView {
    MeasureView {
        time: Stamp::new(entry.time, ask.now),
        who: entry.who,
        measure: match entry.measure {
            Some(Measure::Delete) => "Deleted",
            Some(Measure::Restore) => "Restored",
            Some(Measure::Erase) => "Erased",
            Some(Measure::Free) => "Freed",
            Some(Measure::Import) => "Imported",
            None => "Changed",
        },
        name: entry.name,
        board: entry.board,
        message: entry.message,
        why: entry.why,
        outcome: match entry.outcome.as_deref() {
            Some("done") => String::new(),
            Some(refused) => format!("Not done: {refused}."),
            None => "Interrupted: look whether it was done.".to_owned(),
        },
    }
}

fn show_measures(ask: &Ask, problem: Option<Problem>) -> Answer {
    let board = ask.app.boards.board_or_deleted(&ask.board_name()?)?;
    let message = board.message(ask.id()?)?;
    let status = problem.as_ref().map_or(StatusCode::OK, |it| it.status);
    let template = ModeratePage {
        frame: Frame::of_board(ask, "Moderate a message", &board),
        is_deleted: matches!(message.body, Body::Deleted(_)),
        is_erased: matches!(message.body, Body::Erased(_)),
        message: MessageView::new(ask, &message, usize::MAX),
        why: ask.form().text("why").to_owned(),
        token: token(&ask.form(), problem.as_ref()),
        problem: told(problem.as_ref(), Field::Why),
        unsure: told(problem.as_ref(), Field::Sure),
        notice: problem.map(|problem| problem.sentence),
        form: ask.visitor.form_token(),
    };
    page(ask, status, &template)
}

impl ModeratePage {
    fn most(&self) -> usize {
        MAX_WHY
    }
}
