//! A new message from a program is answered without a look at the addresses, as what is read most is (`quick`).
//!
//! Invariant: the answer is the one that the address would give. Whatever is not plain is left to the address, with the
//! body that was read, before a token of writing is taken: a query, a token of the program's, a protected name, a
//! mistake.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::LazyLock;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Body as _;
use weald::http::RequestBody;

use crate::model::{BoardName, NewMessage, Written};

use super::answer::{fixed, with_tag};
use super::api;
use super::api::change::{NewText, is_json};
use super::app::App;
use super::ask::MAX_BODY;
use super::client::Client;
use super::json::Json;
use super::problem::Problem;
use super::safety::put_safety;
use super::visitor::program;

/// More than a receipt has.
const RECEIPT: usize = 96;

/// The board to which a request writes a message, as far as its head tells.
pub(crate) fn board(request: &Request<RequestBody>) -> Option<BoardName> {
    let path = request.uri().path().strip_prefix("/api/boards/")?;
    let name = path.strip_suffix("/messages")?;
    let length = request.body().size_hint().exact();
    let is_plain = request.method() == Method::POST
        && request.uri().query().is_none()
        && length.is_some_and(|length| (1..=MAX_BODY as u64).contains(&length))
        && is_json(request.headers())
        && !request.headers().contains_key("idempotency-key");
    is_plain.then(|| name.parse().ok()).flatten()
}

/// The answer, with the headers of safety.
///
/// # Errors
/// The request, if it is for the address.
pub(crate) async fn answer(
    app: &App,
    client: Client,
    (board, request): (BoardName, Request<RequestBody>),
) -> Result<Response<Body>, Request<Body>> {
    let (head, body) = request.into_parts();
    let answered = match whole(body).await {
        None => Err(Problem::broken_off()),
        Some(body) => match message(app, &head.headers, &body) {
            None => return Err(Request::from_parts(head, Body::from(body))),
            Some(new) => {
                // Neither is needed any more, while the message becomes durable.
                drop((head, body));
                write(app, client, &board, new).await
            }
        },
    };
    Ok(answered.unwrap_or_else(|problem| {
        let mut refused = api::refused(problem);
        put_safety(refused.headers_mut());
        refused
    }))
}

/// All of a body, which is mostly one frame, and then not copied; `None` if the client breaks off. Of many frames each
/// byte is copied once.
async fn whole<B: http_body::Body<Data = Bytes> + Unpin>(mut body: B) -> Option<Bytes> {
    let (mut first, mut all) = (Bytes::new(), Vec::new());
    while !body.is_end_stream() {
        let frame = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await;
        let Some(frame) = frame else { break };
        let Ok(data) = frame.ok()?.into_data() else {
            continue;
        };
        match (first.is_empty(), all.is_empty()) {
            (true, _) => first = data,
            (false, true) => {
                all.reserve(MAX_BODY);
                all.extend_from_slice(&first);
                all.extend_from_slice(&data);
            }
            (false, false) => all.extend_from_slice(&data),
        }
    }
    match all.is_empty() {
        true => Some(first),
        false => Some(all.into()),
    }
}

/// The message, unless the address has to say something about it.
fn message(app: &App, headers: &HeaderMap, body: &[u8]) -> Option<NewMessage> {
    let requester = program(headers);
    let has_bad_key = requester.owner.is_none() && headers.contains_key(header::AUTHORIZATION);
    let said: NewText<'_> = serde_json::from_slice(body).ok()?;
    let (parent, post) = said.message().ok()?;
    let is_plain =
        !has_bad_key && said.passphrase.is_empty() && app.boards.protected(post.author()).is_none();
    is_plain.then_some(NewMessage {
        parent,
        post,
        requester,
        token: None,
    })
}

async fn write(
    app: &App,
    client: Client,
    board: &BoardName,
    new: NewMessage,
) -> Result<Response<Body>, Problem> {
    let taken = app.writes.take(client.network(), app.age());
    taken.map_err(Problem::too_many)?;
    let written = app.boards.write(board, new).await?;
    Ok(receipt(board, written))
}

fn receipt(board: &BoardName, Written { id, version, .. }: Written) -> Response<Body> {
    let mut json = Json::with_room(RECEIPT);
    json.raw("{\"id\":").number(id.get());
    json.raw(",\"version\":\"").version(version).raw("\"}");
    let mut response = Response::new(Body::from(json.into_bytes()));
    *response.status_mut() = StatusCode::CREATED;
    let headers = response.headers_mut();
    *headers = HEAD.clone();
    let mut tag = Json::with_room(RECEIPT);
    tag.raw("\"").version(version).raw("\"");
    let mut place = Json::with_room(RECEIPT);
    place.raw("/api/boards/").raw(board.as_str());
    place.raw("/messages/").number(id.get());
    for (name, value) in [(header::ETAG, tag), (header::LOCATION, place)] {
        // Both are of ASCII.
        if let Ok(value) = HeaderValue::from_maybe_shared(Bytes::from(value.into_bytes())) {
            headers.insert(name, value);
        }
    }
    response
}

/// The head of a receipt, with any tag and any place. It is cloned, because to put each header into a map takes longer.
static HEAD: LazyLock<HeaderMap> = LazyLock::new(|| {
    let any = with_tag(
        fixed(StatusCode::CREATED, "application/json", Body::empty()),
        "",
    );
    let mut headers = any.into_parts().0.headers;
    headers.insert(header::LOCATION, HeaderValue::from_static(""));
    put_safety(&mut headers);
    headers
});

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;
    use std::task::{Context, Poll};

    use http_body::Frame;

    use super::*;

    /// A body in these frames, which keeps each of them, so that none is written anew in its place.
    struct Frames(VecDeque<Bytes>);

    impl http_body::Body for Frames {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.pop_front().map(|data| Ok(Frame::data(data))))
        }
    }

    fn joined(frames: &[&'static [u8]]) -> Bytes {
        let frames = frames.iter().map(|it| Bytes::from_static(it)).collect();
        weald::block_on(whole(Frames(frames))).unwrap()
    }

    #[test]
    fn a_body_is_whole_whatever_its_frames_are() {
        let one = b"one";
        assert_eq!(joined(&[one]).as_ptr(), one.as_ptr(), "it is not copied");
        assert_eq!(joined(&[b"", b"one", b"", b"two", b"three"]), "onetwothree");
        assert_eq!(joined(&[]), "");
        // There is room for all from the second on: a copy of all that came before for each would take gigabytes.
        let whole = joined(&[&b"x"[..]; 1_000]);
        assert_eq!(whole.len(), 1_000);
        assert!(Vec::from(whole).capacity() >= MAX_BODY);
    }
}
