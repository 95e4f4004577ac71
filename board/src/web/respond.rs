//! The way of a request: its origin, whether there is room for it, its answer, and the headers that keep browsers safe.
//!
//! Steps:
//! 1. Note its origin.
//! 2. Refuse it, if too many are being answered, or this client has asked too often.
//! 3. Answer it.
//! 4. Add the headers of safety; count and log it.
//!
//! Until the boards are open, `/healthz` says that the program lives, and everything else gets a 503.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header,
};
use tower_service::Service;
use weald::http::RequestBody;

use crate::model::BoardName;

use super::api;
use super::app::App;
use super::ask::MAX_FORM;
use super::client::Client;
use super::kept::KeptForm;
use super::origin::is_of_this_machine;
use super::pages;
use super::pairs::Pairs;
use super::problem::Problem;
use super::proxies::Network;
use super::quick;
use super::quick_post;
use super::safety::put_safety;
use super::state;
use super::streams::Streams;

/// How many forms are read at once although their requests are refused: of one network, and of all together.
const FORMS: [usize; 2] = [4, 64];

/// What tells search engines to keep an answer out of their index.
const ROBOTS: HeaderName = HeaderName::from_static("x-robots-tag");

/// The board as a service, once it is open. A clone is the same board.
#[derive(Clone)]
pub(crate) struct Responder(Arc<Door>);

struct Door {
    title: String,
    proxies: Vec<Network>,
    /// The forms that are read although their requests are refused.
    forms: Streams,
    open: OnceLock<Open>,
}

struct Open {
    app: App,
    router: Router,
}

impl Responder {
    /// A board with this title, behind these proxies, that is not open yet.
    pub(crate) fn new(title: String, proxies: Vec<Network>) -> Self {
        let door = Door {
            title,
            proxies,
            forms: Streams::new(FORMS[0], FORMS[1]),
            open: OnceLock::new(),
        };
        Self(Arc::new(door))
    }

    /// From now on requests are answered.
    pub(crate) fn open(&self, app: App) {
        let router = super::routes::routes(app.clone());
        // It was not open before; and if it was, it stays as it is.
        let _ = self.0.open.set(Open { app, router });
    }

    /// The answer before the boards are open.
    async fn too_early(&self, client: Client, request: Request<RequestBody>) -> Response<Body> {
        if request.uri().path() == "/healthz" {
            return state::alive();
        }
        told(self, client, request, Problem::opening()).await
    }
}

impl Service<Request<RequestBody>> for Responder {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        Box::pin(respond(self.clone(), request))
    }
}

async fn respond(
    responder: Responder,
    request: Request<RequestBody>,
) -> Result<Response<Body>, Infallible> {
    let peer = request.body().peer().map(|peer| peer.ip());
    let client = Client::of(peer, request.headers(), &responder.0.proxies);
    let Some(Open { app, router }) = responder.0.open.get() else {
        let mut response = Box::pin(responder.too_early(client, request)).await;
        put_safety(response.headers_mut());
        return Ok(response);
    };
    let began = Instant::now();
    let noted = tracing::enabled!(tracing::Level::INFO)
        .then(|| (request.method().clone(), request.uri().path().to_owned()));
    let is_past = is_of_the_past(request.uri().query());
    let room = Room::take(app.clone());
    let is_misled = app.config.is_local() && names_another(request.headers());
    let path = request.uri().path();
    let mut response = match refusal(app, &room, (client, is_misled), (path, began)) {
        Some(problem) => {
            // A refused request takes no place from others, however slowly its form comes.
            drop(room);
            let mut response = Box::pin(told(&responder, client, request, problem)).await;
            put_safety(response.headers_mut());
            response
        }
        None => {
            let _room = room;
            match quick::answer(app, &request) {
                Some(response) => response,
                None => match quick_post::board(&request) {
                    None => by_address(router.clone(), client, request.map(Body::new)).await,
                    Some(board) => Box::pin(posted(app, router, client, (board, request))).await,
                },
            }
        }
    };
    if is_past {
        let headers = response.headers_mut();
        headers.insert(ROBOTS, HeaderValue::from_static("noindex"));
    }
    let (status, took) = (response.status().as_u16(), began.elapsed());
    app.counts.count(status, took);
    if let Some((method, path)) = noted {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        tracing::info!(%method, path, status, micros, client = %client.address, "answered");
    }
    Ok(response)
}

/// The answer to a new message from a program.
async fn posted(
    app: &App,
    router: &Router,
    client: Client,
    new: (BoardName, Request<RequestBody>),
) -> Response<Body> {
    match quick_post::answer(app, client, new).await {
        Ok(response) => response,
        Err(request) => by_address(router.clone(), client, request).await,
    }
}

/// The answer that the address of a request gives, with the headers of safety.
async fn by_address(
    mut router: Router,
    client: Client,
    mut request: Request<Body>,
) -> Response<Body> {
    request.extensions_mut().insert(client);
    let mut response = match router.call(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    put_safety(response.headers_mut());
    response
}

/// Whether a request looks into the past, which may take a reading of the disk; so search engines are to leave it
/// alone.
fn is_of_the_past(query: Option<&str>) -> bool {
    let mut pairs = query.unwrap_or_default().split('&');
    pairs.any(|pair| {
        ["at=", "of=", "from="]
            .iter()
            .any(|name| pair.starts_with(name))
    })
}

/// A problem, as a page or as JSON. A form comes back with what was written, if there is a place to read it.
async fn told(
    responder: &Responder,
    client: Client,
    request: Request<RequestBody>,
    problem: Problem,
) -> Response<Body> {
    let path = request.uri().path();
    if path.starts_with("/api/") {
        return api::refused(problem);
    }
    let title = &responder.0.title;
    let comes_back = matches!(
        problem.status,
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS
    );
    let is_form = request.method() == Method::POST && comes_back;
    let place = is_form.then(|| responder.0.forms.take(client.network()).ok());
    let Some(_place) = place.flatten() else {
        return pages::problem::show(title, problem);
    };
    let path = path.to_owned();
    let read = to_bytes(Body::new(request.into_body()), MAX_FORM).await;
    let kept = read.ok();
    let kept = kept.and_then(|form| KeptForm::of(&path, &Pairs::of_form(&form)));
    pages::problem::show_kept(title, problem, kept)
}

/// Whether a request asks for a name that another machine may have.
fn names_another(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST);
    host.is_some_and(|host| !host.to_str().is_ok_and(is_of_this_machine))
}

/// Why a request is not even looked at.
fn refusal(
    app: &App,
    room: &Room,
    (client, is_misled): (Client, bool),
    (path, began): (&str, Instant),
) -> Option<Problem> {
    // Programs that monitor the board always get an answer; of the figures, those on this machine. A browser on this
    // machine that was misled is none of them.
    if matches!(path, "/healthz" | "/readyz") {
        return None;
    }
    if is_misled {
        return Some(Problem::misled());
    }
    if path == "/metrics" && client.has_local_peer {
        return None;
    }
    if room.count > app.config.most_requests {
        return Some(Problem::overloaded());
    }
    let taken: Result<(), Duration> = app.reads.take(client.network(), app.age_at(began));
    taken.err().map(Problem::too_many)
}

/// A place among the requests that are being answered, which is given back even if the client goes away.
struct Room {
    app: App,
    count: usize,
}

impl Room {
    fn take(app: App) -> Self {
        let count = app.in_flight.fetch_add(1, Ordering::Relaxed) + 1;
        Self { app, count }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.app.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
