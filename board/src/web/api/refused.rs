//! A problem as `application/problem+json` (RFC 9457).

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use serde::Serialize;

use super::super::answer::fixed;
use super::super::problem::Problem;
use super::values::MessageValue;

#[derive(Serialize)]
struct ProblemValue<'a> {
    title: &'static str,
    status: u16,
    detail: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<FieldValue>,
    /// After a conflict: what the message says now.
    #[serde(skip_serializing_if = "Option::is_none")]
    current: Option<MessageValue<'a>>,
}

#[derive(Serialize)]
struct FieldValue {
    field: &'static str,
    detail: String,
}

/// The answer that tells of a problem.
pub(crate) fn refused(problem: Problem) -> Response<Body> {
    let field = |it: crate::model::FieldProblem| FieldValue {
        field: it.field.name(),
        detail: it.sentence,
    };
    let value = ProblemValue {
        title: problem.status.canonical_reason().unwrap_or("Problem"),
        status: problem.status.as_u16(),
        detail: problem.sentence,
        fields: problem.invalid.0.into_iter().map(field).collect(),
        current: problem.theirs.as_deref().map(MessageValue::new),
    };
    let bytes = serde_json::to_vec(&value).unwrap_or_default();
    let mut response = fixed(problem.status, "application/problem+json", bytes);
    if let Some(wait) = problem.retry_after {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs()));
    }
    if problem.status == StatusCode::UNAUTHORIZED {
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}
