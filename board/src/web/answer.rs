//! Answers: pages, JSON, redirections; and 304 if the client has the version already.

use std::time::Duration;

use askama::Template;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use serde::Serialize;

pub(crate) use super::ask::Answer;
use super::ask::Ask;
use super::problem::Problem;

/// The build, so that a page of another build is not taken for a page of this one.
pub(crate) const BUILD: &str = env!("CARGO_PKG_VERSION");

/// An answer of JSON that is no longer than this is not moved while it is made.
const USUAL: usize = 4 << 10;
/// No answer has more headers, so their map does not grow.
const HEADERS: usize = 12;

/// A page.
pub(crate) fn page(ask: &Ask, status: StatusCode, template: &impl Template) -> Answer {
    let html = template.render().map_err(|error| {
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("The page could not be made: {error}."),
        )
    })?;
    let mut response = Response::new(Body::from(html));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.reserve(HEADERS);
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    put_own(headers);
    put_cookie(headers, ask.visitor.cookie(ask.client.is_secure));
    Ok(response)
}

/// Says that a page is for one visitor, and that it must be asked for again.
fn put_own(headers: &mut HeaderMap) {
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("private, no-cache"),
    );
    headers.insert(header::VARY, HeaderValue::from_static("Cookie"));
}

/// The same page, which also says when to try again.
pub(crate) fn later(answer: Answer, wait: Option<Duration>) -> Answer {
    let mut response = answer?;
    if let Some(wait) = wait {
        let wait = HeaderValue::from(wait.as_secs());
        response.headers_mut().insert(header::RETRY_AFTER, wait);
    }
    Ok(response)
}

/// The tag of a page. It also covers the frame of the page: its visitor, whether and why the board can only be read,
/// and the title of the site.
pub(crate) fn page_tag(ask: &Ask, tag: &str) -> String {
    let moderator = if ask.moderator().is_some() { "m" } else { "" };
    let full = match (ask.app.boards.takes_commits(), ask.app.boards.has_failed()) {
        (true, _) => "",
        (false, false) => "f",
        (false, true) => "o",
    };
    let (visitor, site) = (ask.visitor.mark(), &ask.app.mark);
    format!("W/\"{tag}-{visitor}{moderator}{full}-{site}-{BUILD}\"")
}

/// A page with a tag, or 304 if the browser has it.
pub(crate) fn tagged_page(ask: &Ask, tag: &str, make: impl FnOnce() -> Answer) -> Answer {
    let tag = page_tag(ask, tag);
    match known_page(ask, &tag) {
        Some(known) => Ok(known),
        None => Ok(with_tag(make()?, &tag)),
    }
}

/// The answer to a browser that has the page with this tag. It says the same of the page as the page itself did.
pub(crate) fn known_page(ask: &Ask, tag: &str) -> Option<Response<Body>> {
    let mut known = known(&ask.headers, tag)?;
    put_own(known.headers_mut());
    Some(known)
}

/// An answer with a tag, or 304 if the asker has it.
pub(crate) fn tagged(headers: &HeaderMap, tag: &str, make: impl FnOnce() -> Answer) -> Answer {
    match known(headers, tag) {
        Some(known) => Ok(known),
        None => Ok(with_tag(make()?, tag)),
    }
}

/// The answer to a client that has the version with this tag.
pub(crate) fn known(headers: &HeaderMap, tag: &str) -> Option<Response<Body>> {
    has(headers, &header::IF_NONE_MATCH, tag).then(|| {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        let no_cache = HeaderValue::from_static("no-cache");
        response
            .headers_mut()
            .insert(header::CACHE_CONTROL, no_cache);
        with_tag(response, tag)
    })
}

pub(crate) fn with_tag(mut response: Response<Body>, tag: &str) -> Response<Body> {
    if let Ok(tag) = HeaderValue::from_str(tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// Whether a header lists a tag, as the weak comparison has it.
pub(crate) fn has(headers: &HeaderMap, name: &HeaderName, tag: &str) -> bool {
    let bare = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let all = headers
        .get_all(name)
        .into_iter()
        .filter_map(|value| value.to_str().ok());
    let mut all = all.flat_map(|value| value.split(','));
    all.any(|it| it.trim() == "*" || bare(it) == bare(tag))
}

/// Leads the browser to another page, after something was written.
pub(crate) fn see(ask: &Ask, place: &str, cookie: Option<String>) -> Answer {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let place = HeaderValue::from_str(place).map_err(|_| Problem::not_found())?;
    response.headers_mut().insert(header::LOCATION, place);
    put_cookie(
        response.headers_mut(),
        ask.visitor.cookie(ask.client.is_secure),
    );
    put_cookie(response.headers_mut(), cookie);
    Ok(response)
}

/// Says that what is asked for has another address.
pub(crate) fn moved(place: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    match HeaderValue::from_str(place) {
        Ok(place) => {
            *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
            response.headers_mut().insert(header::LOCATION, place);
            // Without it a browser may keep a permanent redirection for ever, also of what is a page later.
            let no_cache = HeaderValue::from_static("no-cache");
            response
                .headers_mut()
                .insert(header::CACHE_CONTROL, no_cache);
        }
        Err(_) => *response.status_mut() = StatusCode::NOT_FOUND,
    }
    response
}

fn put_cookie(headers: &mut HeaderMap, cookie: Option<String>) {
    if let Some(cookie) = cookie.and_then(|cookie| HeaderValue::from_str(&cookie).ok()) {
        headers.append(header::SET_COOKIE, cookie);
    }
}

/// A value as JSON.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Answer {
    let mut bytes = Vec::with_capacity(USUAL);
    serde_json::to_writer(&mut bytes, value).map_err(|error| {
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("The answer could not be made: {error}."),
        )
    })?;
    Ok(fixed(status, "application/json", bytes))
}

/// An answer of bytes that are not cached.
pub(crate) fn fixed(
    status: StatusCode,
    kind: &'static str,
    bytes: impl Into<Body>,
) -> Response<Body> {
    let mut response = Response::new(bytes.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.reserve(HEADERS);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
