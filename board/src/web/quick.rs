//! What is asked for most is answered without a look at the addresses: the newest topics of a board, for programs.
//!
//! Invariant: the answer is the one that the address would give. Whatever is not plain, such as a query, a deleted
//! board or a mistake, is left to the address.

use std::sync::LazyLock;

use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Body as _;
use weald::http::RequestBody;

use crate::model::BoardName;

use super::answer::{fixed, known, with_tag};
use super::api;
use super::app::App;
use super::safety::put_safety;

/// The answer to a request, if it is one of those, with the headers of safety.
pub(crate) fn answer(app: &App, request: &Request<RequestBody>) -> Option<Response<Body>> {
    let name = request.uri().path().strip_prefix("/api/boards/")?;
    let is_plain = request.method() == Method::GET
        && request.uri().query().is_none()
        && request.body().is_end_stream();
    let name = is_plain.then(|| name.parse::<BoardName>().ok())??;
    let board = app.boards.board(&name).ok()?;
    let tag = api::read::tag(&board);
    let mut response = match known(request.headers(), &tag) {
        Some(known) => known,
        None => {
            let make = || api::values::topics_to_json(&board, 1);
            let list = app.lists.find_or(&board, 1, make).ok()?;
            let mut response = Response::new(Body::from(list));
            *response.headers_mut() = HEAD.clone();
            if let Some(next) = board.pages_of_topics(1).ok()?.next() {
                let next = format!("?page={next}&of={}", board.version());
                api::read::put_next(response.headers_mut(), &next);
            }
            return Some(with_tag(response, &tag));
        }
    };
    put_safety(response.headers_mut());
    Some(response)
}

/// The head of such an answer, with any tag. It is cloned, because to put each header into a map takes longer.
static HEAD: LazyLock<HeaderMap> = LazyLock::new(|| {
    let any = with_tag(fixed(StatusCode::OK, "application/json", Body::empty()), "");
    let mut headers = any.into_parts().0.headers;
    put_safety(&mut headers);
    headers
});
