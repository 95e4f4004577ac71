//! The board of axum: a map in memory behind locks, and the five functions as handlers.
//!
//! A message keeps its time as text, so that a read formats nothing. Nothing is kept: it ends with the program.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, RwLock};
use std::time::SystemTime;

use axum::Router;
use axum::extract::{Json, Path, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse};
use axum::routing::{get, post, put};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

/// How many messages are on a page.
const PAGE: usize = 20;

#[derive(Clone, Default)]
struct Boards(Arc<RwLock<HashMap<String, Arc<RwLock<Board>>>>>);

struct Board {
    name: String,
    title: String,
    version: u64,
    changed: String,
    messages: Vec<Message>,
}

#[derive(Clone, Serialize)]
struct Message {
    id: u64,
    parent: Option<u64>,
    state: &'static str,
    author: String,
    title: String,
    text: String,
    time: String,
    edited: Option<String>,
    replies: usize,
    answers: usize,
}

#[derive(Serialize)]
struct Info {
    name: String,
    title: String,
    about: &'static str,
    topics: usize,
    messages: usize,
    changed: String,
    version: String,
}

#[derive(Serialize)]
struct Shown {
    board: Info,
    page: usize,
    pages: usize,
    messages: Vec<Message>,
}

#[derive(Serialize)]
struct Receipt {
    id: u64,
    version: String,
}

#[derive(Deserialize)]
struct NewBoard {
    title: String,
}

#[derive(Deserialize)]
struct Said {
    #[serde(default)]
    author: String,
    title: String,
    text: String,
}

pub(crate) async fn accept(listener: TcpListener) {
    let router = Router::new()
        .route("/api/boards", get(list).post(create))
        .route("/api/boards/{board}", get(show))
        .route("/api/boards/{board}/messages", post(write))
        .route("/api/boards/{board}/messages/{id}", put(edit))
        .route("/b/{board}", get(page))
        .with_state(Boards::default());
    crate::greetings::serve_routes(listener, router).await;
}

async fn list(State(boards): State<Boards>) -> Json<Vec<Info>> {
    let all = boards.0.read().expect("no handler panics");
    let all = all.values();
    Json(
        all.map(|board| board.read().expect("no handler panics").info())
            .collect(),
    )
}

async fn create(State(boards): State<Boards>, Json(new): Json<NewBoard>) -> impl IntoResponse {
    let board = Board {
        name: new.title.to_lowercase(),
        title: new.title,
        version: 1,
        changed: now(),
        messages: Vec::new(),
    };
    let info = board.info();
    let mut all = boards.0.write().expect("no handler panics");
    all.insert(board.name.clone(), Arc::new(RwLock::new(board)));
    (StatusCode::CREATED, Json(info))
}

async fn show(
    State(boards): State<Boards>,
    Path(name): Path<String>,
) -> Result<Json<Shown>, StatusCode> {
    let board = boards.find(&name)?;
    let board = board.read().expect("no handler panics");
    Ok(Json(Shown {
        board: board.info(),
        page: 1,
        pages: board.messages.len().div_ceil(PAGE).max(1),
        messages: board.newest().cloned().collect(),
    }))
}

async fn page(
    State(boards): State<Boards>,
    Path(name): Path<String>,
) -> Result<Html<String>, StatusCode> {
    let board = boards.find(&name)?;
    let board = board.read().expect("no handler panics");
    let mut html = String::with_capacity(4096);
    let title = Escaped(&board.title);
    let _ = write!(
        html,
        "<!doctype html><html lang=\"en\"><title>{title}</title><h1>{title}</h1><ul>"
    );
    for message in board.newest() {
        let Message { id, time, .. } = message;
        let [title, text, author] =
            [&message.title, &message.text, &message.author].map(|it| Escaped(it));
        let _ = write!(
            html,
            "<li><h2><a href=\"/b/{name}/{id}\">{title}</a></h2><p>{text}</p><p>{author}, \
             <time datetime=\"{time}\">{time}</time></p></li>"
        );
    }
    html.push_str("</ul></html>");
    Ok(Html(html))
}

async fn write(
    State(boards): State<Boards>,
    Path(name): Path<String>,
    Json(said): Json<Said>,
) -> Result<impl IntoResponse, StatusCode> {
    let board = boards.find(&name)?;
    let mut board = board.write().expect("no handler panics");
    let (id, time) = (board.messages.len() as u64 + 1, now());
    board.messages.push(Message {
        id,
        parent: None,
        state: "said",
        author: said.author,
        title: said.title,
        text: said.text,
        time: time.clone(),
        edited: None,
        replies: 0,
        answers: 0,
    });
    Ok((StatusCode::CREATED, Json(board.commit(id, time))))
}

async fn edit(
    State(boards): State<Boards>,
    Path((name, id)): Path<(String, usize)>,
    Json(said): Json<Said>,
) -> Result<Json<Receipt>, StatusCode> {
    let board = boards.find(&name)?;
    let mut board = board.write().expect("no handler panics");
    let time = now();
    let message = board.messages.get_mut(id.wrapping_sub(1));
    let message = message.ok_or(StatusCode::NOT_FOUND)?;
    (message.author, message.title, message.text) = (said.author, said.title, said.text);
    message.edited = Some(time.clone());
    Ok(Json(board.commit(id as u64, time)))
}

impl Boards {
    fn find(&self, name: &str) -> Result<Arc<RwLock<Board>>, StatusCode> {
        let all = self.0.read().expect("no handler panics");
        all.get(name).cloned().ok_or(StatusCode::NOT_FOUND)
    }
}

impl Board {
    fn info(&self) -> Info {
        Info {
            name: self.name.clone(),
            title: self.title.clone(),
            about: "",
            topics: self.messages.len(),
            messages: self.messages.len(),
            changed: self.changed.clone(),
            version: format!("1.{}", self.version),
        }
    }

    fn newest(&self) -> impl Iterator<Item = &Message> {
        self.messages.iter().rev().take(PAGE)
    }

    fn commit(&mut self, id: u64, time: String) -> Receipt {
        self.version += 1;
        self.changed = time;
        let version = format!("1.{}", self.version);
        Receipt { id, version }
    }
}

/// A text as HTML shows it.
struct Escaped<'a>(&'a str);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
            f.write_str(&rest[..at])?;
            f.write_str(match rest.as_bytes()[at] {
                b'&' => "&amp;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'"' => "&quot;",
                _ => "&#39;",
            })?;
            rest = &rest[at + 1..];
        }
        f.write_str(rest)
    }
}

/// The time as RFC 3339 writes it.
fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}
