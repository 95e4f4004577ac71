//! The page that tells what went wrong.

use askama::Template;
use axum::body::Body;
use axum::http::{HeaderValue, Response, header};

use super::super::answer::fixed;
use super::super::kept::KeptForm;
use super::super::problem::Problem;
use super::super::views::Frame;

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage {
    frame: Frame,
    sentence: String,
    /// What the visitor had written.
    kept: Option<KeptForm>,
}

/// The page of a site that tells of a problem.
pub(crate) fn show(site: &str, problem: Problem) -> Response<Body> {
    show_kept(site, problem, None)
}

/// The same, with what the visitor had written.
pub(crate) fn show_kept(site: &str, problem: Problem, kept: Option<KeptForm>) -> Response<Body> {
    let title = problem
        .status
        .canonical_reason()
        .unwrap_or("Something is wrong");
    let frame = Frame::of_site(site, title);
    let template = ProblemPage {
        frame,
        sentence: problem.sentence,
        kept,
    };
    let html = template.render().unwrap_or_default();
    let mut response = fixed(problem.status, "text/html; charset=utf-8", html);
    if let Some(wait) = problem.retry_after {
        let wait = HeaderValue::from(wait.as_secs());
        response.headers_mut().insert(header::RETRY_AFTER, wait);
    }
    response
}
