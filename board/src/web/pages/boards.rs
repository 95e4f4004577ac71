//! The list of boards, and the form for a new one.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;

use crate::model::{BoardError, BoardInfo, Draft, Field, Pages, Token};
use crate::text::moment::{Stamp, freshness};

use super::super::answer::{Answer, later, page, see, tagged_page};
use super::super::ask::Ask;
use super::super::paging::PagesView;
use super::super::problem::Problem;
use super::super::views::Frame;
use super::super::visitor::random;

/// How many boards are on a page.
const BOARDS: usize = 40;

#[derive(Template)]
#[template(path = "boards.html")]
struct BoardsPage {
    frame: Frame,
    boards: Vec<(BoardInfo, Stamp)>,
    pages: PagesView,
}

/// `GET /`: the further pages are of the version of the first one.
pub(crate) async fn list(ask: Arc<Ask>) -> Answer {
    let (boards, version) = ask.boards()?;
    let number = ask.page()?;
    let fresh = boards.first().map(|it| freshness(it.changed, ask.now));
    let tag = match version.zip(fresh) {
        Some((version, fresh)) => format!("{version}-{}-{fresh}", boards.len()),
        None => "none".to_owned(),
    };
    tagged_page(&ask, &tag, || {
        let frame = Frame::new(&ask, "All boards");
        let stamped = |board: BoardInfo| {
            let stamp = Stamp::of_version(board.changed, ask.now);
            (board, stamp)
        };
        let pages = Pages::new(number, BOARDS, boards.len()).ok_or(BoardError::NoPage(number))?;
        let shown = boards.into_iter().skip(pages.range().start).take(BOARDS);
        let template = BoardsPage {
            frame,
            boards: shown.map(stamped).collect(),
            pages: match version {
                Some(version) => PagesView::in_version("/".to_owned(), pages, ("of", version)),
                None => PagesView::of_newest("/".to_owned(), pages),
            },
        };
        page(&ask, StatusCode::OK, &template)
    })
}

#[derive(Template)]
#[template(path = "new_board.html")]
struct NewBoardPage {
    frame: Frame,
    draft: Draft,
    notice: Option<String>,
    title_problem: Option<String>,
    text_problem: Option<String>,
    form: String,
    token: String,
}

/// `GET /new`
pub(crate) async fn form(ask: Arc<Ask>) -> Answer {
    show_form(&ask, Draft::default(), None)
}

/// `POST /new`
pub(crate) async fn create(ask: Arc<Ask>) -> Answer {
    let form = ask.form();
    let (title, about) = (form.text("title"), form.text("text"));
    let created = async {
        ask.must_be_own_form(&form)?;
        ask.may_write()?;
        let site = "new".parse().map_err(|_| Problem::not_found())?;
        let token = form
            .get("token")
            .map(|token| Token::new(&site, &ask.visitor.requester(), token));
        Ok(ask.app.boards.create(title, about, token).await?)
    };
    match created.await {
        Ok(name) => see(&ask, &format!("/b/{name}"), None),
        Err(problem) => {
            let [title, text] = [title, about].map(str::to_owned);
            show_form(
                &ask,
                Draft {
                    title,
                    text,
                    ..Draft::default()
                },
                Some(problem),
            )
        }
    }
}

fn show_form(ask: &Ask, draft: Draft, problem: Option<Problem>) -> Answer {
    let wait = problem.as_ref().and_then(|problem| problem.retry_after);
    let status = problem
        .as_ref()
        .map_or(StatusCode::OK, |problem| problem.status);
    let of = |field| {
        problem
            .as_ref()
            .and_then(|problem| problem.invalid.of(field))
            .map(str::to_owned)
    };
    let template = NewBoardPage {
        frame: Frame::new(ask, "New board"),
        title_problem: of(Field::Title),
        text_problem: of(Field::Text),
        notice: problem.map(|problem| problem.sentence),
        draft,
        form: ask.visitor.form_token(),
        token: random(),
    };
    later(page(ask, status, &template), wait)
}
