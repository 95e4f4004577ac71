//! A request as the pages and the API see it: its path, its query, its form, and its sender.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::{HeaderMap, Request, Response, StatusCode, header};
use http_body::Body as _;
use weald::forest::disk::Moment;
use weald::forest::{NodeId, Version};

use crate::model::{BoardAt, BoardError, BoardInfo, BoardName, Deed, Draft, Message};
use crate::text::moment;

use super::app::App;
use super::client::Client;
use super::origin::Origin;
use super::pairs::Pairs;
use super::problem::Problem;
use super::streams::Taken;
use super::visitor::Visitor;

/// The most bytes of a body that is processed.
pub(crate) const MAX_BODY: usize = 64 << 10;
/// The most bytes of a form that is read to its end, so that it comes back with what was written even if it is too
/// large.
pub(crate) const MAX_FORM: usize = 256 << 10;

/// What a request is answered with.
pub(crate) type Answer = Result<Response<Body>, Problem>;

/// A request.
pub(crate) struct Ask {
    pub(crate) app: App,
    pub(crate) client: Client,
    pub(crate) visitor: Visitor,
    pub(crate) headers: HeaderMap,
    pub(crate) query: Pairs,
    pub(crate) body: Bytes,
    pub(crate) now: SystemTime,
    /// Whether a program asks, which is known by its key, and not a browser, which is known by its cookies.
    pub(crate) is_program: bool,
    params: Pairs,
    /// Whether it took a token of writing.
    has_paid: AtomicBool,
}

impl Ask {
    /// Reads a request to its end, with a body of at most `most` bytes.
    ///
    /// # Errors
    /// 413, and 400 if the client breaks off.
    pub(crate) async fn of(app: App, request: Request<Body>, most: usize) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let params = RawPathParams::from_request_parts(&mut parts, &()).await;
        let params = params.map(|all| {
            Pairs::new(
                all.iter()
                    .map(|(name, value)| (name.to_owned(), value.to_owned())),
            )
        });
        let length = parts
            .headers
            .get(header::CONTENT_LENGTH)
            .and_then(|it| it.to_str().ok()?.parse().ok());
        // More of a form is read than is processed.
        let told = if most == MAX_FORM { MAX_BODY } else { most };
        if length.is_some_and(|length: usize| length > most) {
            return Err(Problem::too_large(told));
        }
        let body = match body.is_end_stream() {
            true => Ok(Bytes::new()),
            false => to_bytes(body, most).await,
        };
        let body = body.map_err(|error| {
            let is_long = std::error::Error::source(&error)
                .is_some_and(|it| it.to_string().contains("limit"));
            match is_long {
                true => Problem::too_large(told),
                false => Problem::broken_off(),
            }
        })?;
        let client = parts.extensions.get().copied();
        let client = client.unwrap_or(Client::of(None, &parts.headers, &[]));
        let origin = app.config.origin.as_ref();
        Ok(Self {
            client: Client {
                is_secure: client.is_secure || origin.is_some_and(Origin::is_secure),
                ..client
            },
            visitor: Visitor::of(&parts.headers),
            query: Pairs::of_form(parts.uri.query().unwrap_or_default().as_bytes()),
            is_program: parts.uri.path().starts_with("/api/"),
            params: params.unwrap_or_default(),
            has_paid: AtomicBool::new(false),
            headers: parts.headers,
            now: SystemTime::now(),
            app,
            body,
        })
    }

    /// The fields of a form.
    pub(crate) fn form(&self) -> Pairs {
        Pairs::of_form(&self.body)
    }

    /// The board that the path names.
    pub(crate) fn board_name(&self) -> Result<BoardName, Problem> {
        let name = self.params.text("board").parse();
        name.map_err(|_| Problem::not_found())
    }

    /// The message that the path names.
    pub(crate) fn id(&self) -> Result<NodeId, Problem> {
        number(self.params.text("message")).ok_or_else(Problem::not_found)
    }

    /// The board that the path names, in the version or at the time that the query names, or as it is.
    pub(crate) async fn board(&self) -> Result<BoardAt, Problem> {
        let name = self.board_name()?;
        let boards = &self.app.boards;
        match self.asked("at")?.unwrap_or_default() {
            "" => match boards.board(&name) {
                // A moderator may restore it, and looks at it first.
                Err(BoardError::BoardGone) if self.is_moderator() => {
                    Ok(boards.board_or_deleted(&name)?)
                }
                board => Ok(board?),
            },
            at => {
                let moment = at_moment(at).ok_or_else(|| {
                    let sentence = format!(
                        "“{}” is neither a version nor a time. A time is written 2026-11-23T21:44.",
                        shown(at)
                    );
                    Problem::new(StatusCode::BAD_REQUEST, sentence)
                })?;
                self.board_at(&name, moment).await
            }
        }
    }

    async fn board_at(&self, name: &BoardName, moment: Moment) -> Result<BoardAt, Problem> {
        let boards = &self.app.boards;
        // The newest version is not the past.
        let newest = boards.board_or_deleted(name)?;
        if newest.is_deleted() && !self.is_moderator() {
            return Err(BoardError::BoardGone.into());
        }
        match moment {
            Moment::Version(version) if version == newest.version() => Ok(newest),
            Moment::Time(time) if time >= self.now => Ok(newest),
            moment => {
                let _look = self.look()?;
                Ok(boards.board_or_deleted_at(name, moment).await?)
            }
        }
    }

    /// The board of a list that has numbered pages: in the version in which they are counted, if the query names one,
    /// and otherwise as [`board`](Self::board) has it.
    pub(crate) async fn listed_board(&self) -> Result<BoardAt, Problem> {
        match self.pinned()? {
            Some(version) if self.is_pinned() => {
                let name = self.board_name()?;
                self.board_at(&name, Moment::Version(version)).await
            }
            _ => self.board().await,
        }
    }

    /// The version in which numbered pages are counted, if the query names one.
    fn pinned(&self) -> Result<Option<Version>, Problem> {
        match self.asked("of")?.unwrap_or_default() {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| {
                let sentence = "`of` is no version; the links between pages have one.";
                Problem::new(StatusCode::BAD_REQUEST, sentence)
            }),
        }
    }

    /// Whether the query names the version in which pages are counted, so that they do not shift. That is no look into
    /// the past: what such a page links to, and what it offers, is of the present.
    pub(crate) fn is_pinned(&self) -> bool {
        let asked = |name| self.query.get(name).is_some_and(|value| !value.is_empty());
        asked("of") && !asked("at")
    }

    /// A look into the past. Each address may have a few of them at once.
    ///
    /// # Errors
    /// 429.
    pub(crate) fn look(&self) -> Result<Taken, Problem> {
        let place = self.app.looks.take(self.client.network());
        place.map_err(|_| Problem::too_many_looks())
    }

    /// The same for a change that needs this version of the board, unless memory still has it.
    ///
    /// # Errors
    /// 429.
    pub(crate) fn look_unless_kept(
        &self,
        name: &BoardName,
        seen: Version,
    ) -> Result<Option<Taken>, Problem> {
        match self.app.boards.keeps(name, seen) {
            true => Ok(None),
            false => {
                let place = self.app.looks.take(self.client.network());
                place.map(Some).map_err(|_| Problem::too_many_former())
            }
        }
    }

    /// The same for an undo: of what an edit has changed, and of what its requester saw, if that is told. A deletion
    /// and a restoration are taken back without a look at what was before.
    ///
    /// # Errors
    /// 429.
    pub(crate) fn look_for_undo(
        &self,
        name: &BoardName,
        message: &Message,
        seen: Option<Version>,
    ) -> Result<Option<Taken>, Problem> {
        let is_edit = matches!(message.change, Some((Deed::Edit, _)));
        let was = message.was.filter(|_| is_edit);
        let needed = [was, seen].into_iter().flatten();
        let gone = needed.filter(|version| !self.app.boards.keeps(name, *version));
        match gone.min() {
            None => Ok(None),
            Some(version) => self.look_unless_kept(name, version),
        }
    }

    /// The boards in the version in which their pages are counted, or as they are; and that version.
    ///
    /// # Errors
    /// 400, 404.
    pub(crate) fn boards(&self) -> Result<(Vec<BoardInfo>, Option<Version>), Problem> {
        let boards = &self.app.boards;
        match self.pinned()? {
            None => {
                let boards = boards.list();
                let newest = boards.iter().map(|board| board.version).max();
                Ok((boards, newest))
            }
            Some(of) => Ok((boards.list_at(of)?, Some(of))),
        }
    }

    /// The version with which a list begins, if the query names one.
    ///
    /// # Errors
    /// 400.
    pub(crate) fn from(&self) -> Result<Option<Version>, Problem> {
        match self.asked("from")?.unwrap_or_default() {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| {
                let sentence = "`from` is no version; the links of a history have one.";
                Problem::new(StatusCode::BAD_REQUEST, sentence)
            }),
        }
    }

    /// The number of the page that the query names.
    pub(crate) fn page(&self) -> Result<usize, Problem> {
        match self.asked("page")? {
            None => Ok(1),
            Some(text) => text.parse().map_err(|_| Problem::not_found()),
        }
    }

    /// What the query has under a name, if it is there.
    ///
    /// # Errors
    /// 400, if it is there twice: one of the two would count, and nobody would know which.
    pub(crate) fn asked(&self, name: &str) -> Result<Option<&str>, Problem> {
        match self.query.is_twice(name) {
            false => Ok(self.query.get(name)),
            true => {
                let sentence = format!("The query has `{name}` more than once.");
                Err(Problem::new(StatusCode::BAD_REQUEST, sentence))
            }
        }
    }

    /// Whether the client may write now.
    ///
    /// # Errors
    /// 429.
    pub(crate) fn may_write(&self) -> Result<(), Problem> {
        let taken = self.app.writes.take(self.client.network(), self.app.age());
        taken.map_err(Problem::too_many)?;
        // Relaxed: the parts of one request are handled one after the other.
        self.has_paid.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Gives the token of writing back, if nothing was written because a field was wrong: ten typing errors are no
    /// flood.
    pub(crate) fn settle(&self, answer: &Answer) {
        let status = match answer {
            Ok(response) => response.status(),
            Err(problem) => problem.status,
        };
        if status == StatusCode::UNPROCESSABLE_ENTITY
            && self.has_paid.swap(false, Ordering::Relaxed)
        {
            self.app.writes.give_back(self.client.network());
        }
    }

    /// Whether a form came from a page of this board, is not too large, and has each field once.
    ///
    /// # Errors
    /// 400, 403, 413.
    pub(crate) fn must_be_own_form(&self, form: &Pairs) -> Result<(), Problem> {
        if self.body.len() > MAX_BODY {
            return Err(Problem::too_large(MAX_BODY));
        }
        let header = |name: &str| self.headers.get(name).and_then(|value| value.to_str().ok());
        let is_own_site =
            header("sec-fetch-site").is_none_or(|site| matches!(site, "same-origin" | "none"));
        let host = header("host").unwrap_or_default();
        let is_own_origin = header("origin").is_none_or(|origin| match &self.app.config.origin {
            Some(own) => origin == own.as_str(),
            None => origin
                .split_once("://")
                .is_some_and(|(_, authority)| authority == host),
        });
        let has_token = form.text("form") == self.visitor.form_token();
        if !(is_own_site && is_own_origin && has_token) {
            return Err(Problem::forged());
        }
        // One of the two would count, and nobody would know which.
        match form.twice() {
            None => Ok(()),
            Some(name) => {
                let sentence = format!("The form has `{}` more than once.", shown(name));
                Err(Problem::new(StatusCode::BAD_REQUEST, sentence))
            }
        }
    }
}

/// What somebody has sent, as a sentence can have it.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(100).collect()
}

/// The content of a form.
pub(crate) fn draft(form: &Pairs) -> Draft {
    Draft {
        author: form.text("author").to_owned(),
        title: form.text("title").to_owned(),
        text: form.text("text").to_owned(),
    }
}

/// The number of a message.
pub(crate) fn number(text: &str) -> Option<NodeId> {
    let is_number = !text.starts_with('0') && text.bytes().all(|it| it.is_ascii_digit());
    NodeId::new(text.parse().ok().filter(|_| is_number)?)
}

fn at_moment(text: &str) -> Option<Moment> {
    match text.parse::<Version>() {
        Ok(version) => Some(Moment::Version(version)),
        Err(_) => moment::parse(text)
            .or_else(|| moment::parse_exact(text))
            .map(Moment::Time),
    }
}
