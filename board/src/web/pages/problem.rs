//! The page for whatever went wrong.

use askama::Template;
use axum::http::{HeaderValue, header};

use super::super::answer::{Answer, page};
use super::super::ask::Ask;
use super::super::problem::Problem;
use super::super::views::Frame;

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage {
    frame: Frame,
    sentence: String,
}

/// The page that tells of a problem.
pub(crate) fn show(ask: &Ask, problem: Problem) -> Answer {
    let status = problem.status;
    let title = status.canonical_reason().unwrap_or("Something is wrong");
    let template = ProblemPage {
        frame: Frame::new(ask, title),
        sentence: problem.sentence,
    };
    let mut response = page(ask, status, &template)?;
    if let Some(wait) = problem.retry_after {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs()));
    }
    Ok(response)
}
