//! All addresses of the board, and what answers there.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::handler::Handler;
use axum::http::{Method, Request, Response, StatusCode, Uri};
use axum::routing::{get, post};

use super::answer::{Answer, moved};
use super::api;
use super::app::App;
use super::ask::{Ask, MAX_BODY, MAX_FORM};
use super::assets;
use super::exchange;
use super::get_writes;
use super::kept::KeptForm;
use super::live;
use super::metrics;
use super::pages::{
    admin, board, boards, change, feed, history, measures, moderate, names, problem, search,
    thread, write,
};
use super::problem::Problem;
use super::signing::moderator_by_key;
use super::state;

/// What answers each address.
pub(crate) fn routes(app: App) -> Router {
    let pages = Router::new()
        .route("/", get(page(boards::list)))
        .route("/new", get(page(boards::form)).post(page(boards::create)))
        .route(
            "/moderate",
            get(page(moderate::show)).post(page(moderate::sign_in)),
        )
        .route("/admin", get(page(admin::show)))
        .route("/moderate/sign-out", post(page(moderate::sign_out)))
        .route("/moderate/names", post(page(moderate::free)))
        .route(
            "/b/{board}/{message}/moderate",
            get(page(moderate::form)).post(page(moderate::take)),
        )
        .route(
            "/b/{board}/moderate",
            get(page(measures::form)).post(page(measures::take)),
        )
        .route("/names", get(page(names::show)).post(page(names::protect)))
        .route("/names/change", post(page(names::change)))
        .route("/b/{board}", get(page(board::show)))
        .route(
            "/b/{board}/write",
            get(page(write::form)).post(page(write::topic)),
        )
        .route("/b/{board}/search", get(page(search::show)))
        .route("/b/{board}/feed", get(page(feed::show)))
        .route("/b/{board}/live", get(page(live::events)))
        .route("/b/{board}/export", get(page(exchange::export)))
        .route("/b/{board}/{message}", get(page(thread::show)))
        .route("/b/{board}/{message}/answer", post(page(write::answer)))
        .route(
            "/b/{board}/{message}/edit",
            get(page(change::form)).post(page(change::edit)),
        )
        .route("/b/{board}/{message}/history", get(page(history::show)))
        .route("/b/{board}/{message}/delete", post(page(change::delete)))
        .route("/b/{board}/{message}/restore", post(page(change::restore)))
        .route("/b/{board}/{message}/undo", post(page(change::undo)))
        .route("/b/{board}/{message}/erase", post(page(change::erase)))
        .route("/live.js", get(assets::script))
        .route("/style.css", get(assets::style))
        .route("/icon.svg", get(assets::icon))
        .route("/healthz", get(state::healthy))
        .route("/readyz", get(state::ready))
        .route("/metrics", get(metrics::metrics))
        .method_not_allowed_fallback(page(not_allowed));
    let pages = match app.config.has_get_writes {
        true => pages.merge(by_get()),
        false => pages,
    };
    api().merge(pages).fallback(Missing).with_state(app)
}

/// Addresses that are served only for measuring.
fn by_get() -> Router<App> {
    Router::new()
        .route("/get/create", get(program(get_writes::create)))
        .route("/get/write", get(program(get_writes::write)))
        .route("/get/edit", get(program(get_writes::edit)))
}

/// Those for programs. They have their whole address, because a router that is nested writes each request's address
/// anew.
fn api() -> Router<App> {
    let message = get(program(api::read::message))
        .put(program(api::change::edit))
        .delete(program(api::change::delete));
    Router::new()
        .route("/api/openapi.json", get(program(api::read::openapi)))
        .route(
            "/api/boards",
            get(program(api::read::boards)).post(program(api::change::create)),
        )
        .route("/api/boards/{board}", get(program(api::read::board)))
        .route("/api/boards/{board}/events", get(program(live::events)))
        .route("/api/boards/{board}/export", get(program(exchange::export)))
        .route("/api/import", post(Importing))
        .route(
            "/api/boards/{board}/search",
            get(program(api::read::search)),
        )
        .route(
            "/api/boards/{board}/messages",
            post(program(api::change::write)),
        )
        .route("/api/boards/{board}/messages/{message}", message)
        .route(
            "/api/boards/{board}/messages/{message}/history",
            get(program(api::read::history)),
        )
        .route(
            "/api/boards/{board}/messages/{message}/restore",
            post(program(api::change::restore)),
        )
        .route(
            "/api/boards/{board}/messages/{message}/undo",
            post(program(api::change::undo)),
        )
        .route(
            "/api/boards/{board}/messages/{message}/erase",
            post(program(api::change::erase)),
        )
        .route(
            "/api/boards/{board}/messages/{message}/moderate",
            post(program(api::moderate::take)),
        )
        .route(
            "/api/boards/{board}/moderate",
            post(program(api::moderate::take_board)),
        )
        .route("/api/moderators", post(program(api::moderate::sign_in)))
        .route("/api/audit", get(program(api::moderate::audit)))
        .route("/api/names", post(program(api::names::protect)))
        .route("/api/names/passphrase", post(program(api::names::change)))
        .route("/api/names/release", post(program(api::names::release)))
        .route("/api/names/free", post(program(api::moderate::free)))
        .method_not_allowed_fallback(program(not_allowed))
}

/// An answer for a browser: a page tells what went wrong.
#[derive(Clone, Copy)]
struct Page<F>(F);

/// An answer for a program: JSON tells what went wrong.
#[derive(Clone, Copy)]
struct Program<F>(F);

fn page<F>(answer: F) -> Page<F> {
    Page(answer)
}

fn program<F>(answer: F) -> Program<F> {
    Program(answer)
}

/// An answer to a moderator's program that brings a board, which is larger than anything that others may send.
#[derive(Clone, Copy)]
struct Importing;

type Answering = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

impl<F, A> Handler<(), App> for Page<F>
where
    F: Fn(Arc<Ask>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Answer> + Send + 'static,
{
    type Future = Answering;

    fn call(self, request: Request<Body>, app: App) -> Answering {
        Box::pin(async move {
            let site = &app.config.title;
            let posted = request.method() == Method::POST;
            let posted = posted.then(|| request.uri().path().to_owned());
            let ask = match Ask::of(app.clone(), request, MAX_FORM).await {
                Ok(ask) => Arc::new(ask),
                Err(problem) => return problem::show(site, problem.unread()),
            };
            let answer = self.0(ask.clone()).await;
            ask.settle(&answer);
            answer.unwrap_or_else(|problem| {
                let kept = posted.and_then(|path| KeptForm::of(&path, &ask.form()));
                problem::show_kept(site, problem, kept)
            })
        })
    }
}

impl<F, A> Handler<(), App> for Program<F>
where
    F: Fn(Arc<Ask>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Answer> + Send + 'static,
{
    type Future = Answering;

    fn call(self, request: Request<Body>, app: App) -> Answering {
        Box::pin(async move {
            let answered = async {
                let ask = Arc::new(Ask::of(app, request, MAX_BODY).await?);
                let answer = self.0(ask.clone()).await;
                ask.settle(&answer);
                answer
            };
            answered.await.unwrap_or_else(api::refused)
        })
    }
}

/// What answers where there is nothing: as a page, or as JSON among the addresses for programs. An address that ends in
/// a slash leads to the one without, whether or not there is a page.
#[derive(Clone, Copy)]
struct Missing;

impl Handler<(), App> for Missing {
    type Future = Answering;

    fn call(self, request: Request<Body>, app: App) -> Answering {
        let path = request.uri().path();
        if path == "/api" || path.starts_with("/api/") {
            return program(not_found).call(request, app);
        }
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        match without_slash(request.uri()).filter(|_| is_read) {
            Some(place) => Box::pin(async move { moved(&place) }),
            None => page(not_found).call(request, app),
        }
    }
}

/// The address without the slash at its end, unless a browser could take it for one of another site, as `//there`.
fn without_slash(uri: &Uri) -> Option<String> {
    let whole = uri.path();
    let is_own = whole.starts_with('/') && !whole.contains("//") && !whole.contains('\\');
    let path = whole.strip_suffix('/').filter(|it| !it.is_empty())?;
    let query = uri
        .query()
        .map_or(String::new(), |query| format!("?{query}"));
    is_own.then(|| format!("{path}{query}"))
}

impl Handler<(), App> for Importing {
    type Future = Answering;

    fn call(self, request: Request<Body>, app: App) -> Answering {
        Box::pin(async move {
            let is_allowed = moderator_by_key(&app, request.headers()).is_some();
            let answered = async {
                // What others send is read as any request is, and refused.
                let (request, body) = match is_allowed {
                    true => {
                        let (parts, body) = request.into_parts();
                        (Request::from_parts(parts, Body::empty()), body)
                    }
                    false => (request, Body::empty()),
                };
                let most = if is_allowed { usize::MAX } else { MAX_BODY };
                let ask = Ask::of(app, request, most).await?;
                exchange::import(Arc::new(ask), body).await
            };
            answered.await.unwrap_or_else(api::refused)
        })
    }
}

async fn not_found(_ask: Arc<Ask>) -> Answer {
    Err(Problem::not_found())
}

async fn not_allowed(_ask: Arc<Ask>) -> Answer {
    Err(Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "This address does not answer to this method.",
    ))
}
