//! The page on which a name is protected, gets another passphrase, or is given up.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;

use crate::model::{Field, Invalid, MIN_PASSPHRASE};

use super::super::answer::{Answer, later, page, see};
use super::super::ask::Ask;
use super::super::problem::Problem;
use super::super::views::Frame;

#[derive(Template)]
#[template(path = "names.html")]
struct NamesPage {
    frame: Frame,
    /// What was done.
    done: Option<&'static str>,
    /// The two forms.
    protect: NameForm,
    change: NameForm,
    form: String,
}

/// One of the forms, as it came back. A passphrase never does.
#[derive(Default)]
struct NameForm {
    name: String,
    notice: Option<String>,
    invalid: Invalid,
}

impl NameForm {
    fn problem(&self, field: &str) -> Option<&str> {
        let all = [Field::Author, Field::Passphrase, Field::NewPassphrase];
        let field = all.into_iter().find(|it| it.name() == field)?;
        self.invalid.of(field)
    }
}

/// `GET /names`
pub(crate) async fn show(ask: Arc<Ask>) -> Answer {
    let done = match ask.asked("done")?.unwrap_or_default() {
        "protected" => {
            Some("The name is protected. This browser can use it at once, without the passphrase.")
        }
        "changed" => Some("The name has its new passphrase. The old one is forgotten."),
        "released" => Some("The name is given up: anybody may use it now."),
        _ => None,
    };
    let name = ask.visitor.author().to_owned();
    let protect = NameForm {
        name,
        ..NameForm::default()
    };
    show_with(&ask, done, (protect, NameForm::default()), StatusCode::OK)
}

/// `POST /names`
pub(crate) async fn protect(ask: Arc<Ask>) -> Answer {
    let form = ask.form();
    let name = form.text("author");
    let outcome = async {
        ask.must_be_own_form(&form)?;
        ask.may_write()?;
        let requester = ask.visitor.requester();
        ask.protect(requester, name, form.text("passphrase")).await
    };
    match outcome.await {
        Ok(()) => see(&ask, "/names?done=protected", None),
        Err(problem) => {
            let wait = problem.retry_after;
            let (form, status) = refused(name, problem);
            let shown = show_with(&ask, None, (form, NameForm::default()), status);
            later(shown, wait)
        }
    }
}

/// `POST /names/change`
pub(crate) async fn change(ask: Arc<Ask>) -> Answer {
    let form = ask.form();
    let name = form.text("author");
    let new = (form.text("do") != "release").then(|| form.text("new"));
    let outcome = async {
        ask.must_be_own_form(&form)?;
        ask.may_write()?;
        ask.change_name(name, form.text("passphrase"), new).await
    };
    match outcome.await {
        Ok(()) if new.is_some() => see(&ask, "/names?done=changed", None),
        Ok(()) => see(&ask, "/names?done=released", None),
        Err(problem) => {
            let wait = problem.retry_after;
            let (form, status) = refused(name, problem);
            let shown = show_with(&ask, None, (NameForm::default(), form), status);
            later(shown, wait)
        }
    }
}

fn refused(name: &str, problem: Problem) -> (NameForm, StatusCode) {
    let form = NameForm {
        name: name.to_owned(),
        notice: Some(problem.sentence),
        invalid: problem.invalid,
    };
    (form, problem.status)
}

fn show_with(
    ask: &Ask,
    done: Option<&'static str>,
    (protect, change): (NameForm, NameForm),
    status: StatusCode,
) -> Answer {
    let template = NamesPage {
        frame: Frame::new(ask, "Protected names"),
        done,
        protect,
        change,
        form: ask.visitor.form_token(),
    };
    page(ask, status, &template)
}

impl NamesPage {
    fn fewest(&self) -> usize {
        MIN_PASSPHRASE
    }
}
