//! The values of the templates: messages, forms and frames, with every text as it is printed.

use std::time::SystemTime;

use askama::Template;

use crate::model::{BoardAt, Body, Deed, DeletedBy, Draft, Field, Invalid, MAX_TEXT, Message};
use crate::text::markdown;
use crate::text::moment::Stamp;

use super::ask::Ask;
use super::visitor::random;

/// What stands around every page.
pub(crate) struct Frame {
    /// What the site is called.
    pub(crate) site: String,
    /// What the page is called.
    pub(crate) title: String,
    /// The board of the page.
    pub(crate) board: Option<BoardLink>,
    /// Whether the browser that asks is a moderator's, and whether there are any.
    pub(crate) is_moderator: bool,
    pub(crate) has_moderators: bool,
    /// What was searched for.
    pub(crate) sought: String,
    /// Whether the board takes nothing new at the moment, and whether it never will until its next start.
    pub(crate) is_full: bool,
    pub(crate) has_failed: bool,
    /// After how many seconds the page is fetched again, if it is.
    pub(crate) every: Option<u32>,
    /// Where the page is, if it is not where its address leads: it came in answer to a form.
    pub(crate) page: Option<String>,
}

/// A board as a link.
pub(crate) struct BoardLink {
    pub(crate) name: String,
    pub(crate) title: String,
    /// What links to other pages of the same version have behind them: nothing, or `?at=…`.
    pub(crate) at: String,
    /// In the past: where the same page is as it is now.
    pub(crate) now: String,
    /// The version as a page tells of it.
    pub(crate) number: u64,
    /// The version after which live updates begin.
    pub(crate) newest: String,
    pub(crate) changed: Stamp,
    pub(crate) is_past: bool,
    /// Whether the reader is a moderator.
    pub(crate) is_moderated: bool,
    /// Whether only moderators see it.
    pub(crate) is_deleted: bool,
}

impl Frame {
    /// Whether the script of the page has something to do.
    pub(crate) fn has_script(&self) -> bool {
        self.every.is_some() || self.board.is_some()
    }

    pub(crate) fn new(ask: &Ask, title: impl Into<String>) -> Self {
        Self {
            is_moderator: ask.moderator().is_some(),
            has_moderators: ask.app.moderators.are_there(),
            is_full: !ask.app.boards.takes_commits(),
            has_failed: ask.app.boards.has_failed(),
            ..Self::of_site(&ask.app.config.title, title)
        }
    }

    pub(crate) fn of_site(site: &str, title: impl Into<String>) -> Self {
        Self {
            site: site.to_owned(),
            title: title.into(),
            board: None,
            is_moderator: false,
            has_moderators: false,
            sought: String::new(),
            is_full: false,
            has_failed: false,
            every: None,
            page: None,
        }
    }

    pub(crate) fn of_board(ask: &Ask, title: impl Into<String>, board: &BoardAt) -> Self {
        let is_past = board.is_past() && !ask.is_pinned();
        let (at, now) = match is_past {
            true => (format!("?at={}", board.version()), place_now(ask, board)),
            false => Default::default(),
        };
        let link = BoardLink {
            name: board.name().to_string(),
            title: board.title().to_owned(),
            at,
            now,
            number: board.version().number,
            newest: board.newest().to_string(),
            changed: Stamp::new(board.time(), ask.now),
            is_past,
            is_moderated: ask.moderator().is_some(),
            is_deleted: board.is_deleted(),
        };
        Self {
            board: Some(link),
            ..Self::new(ask, title)
        }
    }
}

/// Where the board or the message of a page is as it is now. Lists only grow, so the page has its number there, too.
fn place_now(ask: &Ask, board: &BoardAt) -> String {
    let mut place = format!("/b/{}", board.name());
    if let Ok(id) = ask.id() {
        place += &format!("/{}", id.get());
    }
    match ask.page() {
        Ok(1) | Err(_) => place,
        Ok(page) => format!("{place}?page={page}"),
    }
}

/// A message as a page shows it.
pub(crate) struct MessageView {
    pub(crate) id: u64,
    pub(crate) author: String,
    /// Whether the name is protected, and was the author's.
    pub(crate) is_proven: bool,
    pub(crate) title: String,
    /// Safe to show as it is.
    pub(crate) html: String,
    /// Whether this is only the beginning.
    pub(crate) is_cut: bool,
    /// If there is nothing to read, why.
    pub(crate) gone: Option<String>,
    pub(crate) time: Stamp,
    pub(crate) edited: Option<Stamp>,
    pub(crate) is_own: bool,
    pub(crate) parent: Option<u64>,
}

impl MessageView {
    /// A message; at most `most` bytes of its text are shown.
    pub(crate) fn new(ask: &Ask, message: &Message, most: usize) -> Self {
        let post = message.post();
        let text = post.map(crate::model::Post::text).unwrap_or_default();
        let cut = markdown::beginning(text, most);
        let is_own = ask.visitor.requester().may_change(message.owner);
        let gone = match &message.body {
            Body::Said(_) => None,
            Body::Deleted(DeletedBy::Author) => Some("Deleted by its author".to_owned()),
            Body::Deleted(DeletedBy::Moderator) => Some("Deleted by a moderator".to_owned()),
            Body::Erased(when) => Some(format!(
                "Erased for good on {}",
                Stamp::new(*when, ask.now).exact
            )),
        };
        Self {
            id: message.id.get(),
            author: post
                .map(|post| post.author().to_owned())
                .unwrap_or_default(),
            is_proven: message.is_proven,
            title: title_of(message),
            html: markdown::to_html(cut.unwrap_or(text)),
            is_cut: cut.is_some(),
            gone,
            time: Stamp::new(message.time, ask.now),
            edited: message.edited().map(|time| Stamp::new(time, ask.now)),
            is_own,
            parent: message.parent.map(weald::forest::NodeId::get),
        }
    }
}

/// What a message is called.
pub(crate) fn title_of(message: &Message) -> String {
    match (message.post(), &message.body) {
        (Some(post), _) => post.title().to_owned(),
        (None, Body::Erased(_)) => "Erased message".to_owned(),
        (None, _) => "Deleted message".to_owned(),
    }
}

/// A form for a message.
#[derive(Template)]
#[template(path = "form.html")]
pub(crate) struct FormView {
    pub(crate) action: String,
    /// What its button says.
    pub(crate) verb: &'static str,
    /// What the text is called.
    pub(crate) label: &'static str,
    pub(crate) has_title: bool,
    pub(crate) draft: Draft,
    pub(crate) invalid: Invalid,
    /// What is to be said above it.
    pub(crate) notice: Option<String>,
    /// The token of this visitor's forms.
    pub(crate) form: String,
    /// What makes it one message if it is sent twice.
    pub(crate) token: String,
    /// The version that an edit began from.
    pub(crate) seen: Option<String>,
}

impl FormView {
    pub(crate) fn new(ask: &Ask, action: String) -> Self {
        Self {
            action,
            verb: "Send",
            label: "Text",
            has_title: false,
            draft: Draft {
                author: ask.visitor.author().to_owned(),
                ..Draft::default()
            },
            invalid: Invalid::default(),
            notice: None,
            form: ask.visitor.form_token(),
            token: random(),
            seen: None,
        }
    }

    fn most_text(&self) -> usize {
        MAX_TEXT
    }

    fn problem(&self, field: &str) -> Option<&str> {
        let all = [Field::Author, Field::Title, Field::Text, Field::Passphrase];
        let field = all.into_iter().find(|it| it.name() == field)?;
        self.invalid.of(field)
    }
}

/// What was done to a message, as its history tells it.
pub(crate) fn told(deed: Option<Deed>) -> &'static str {
    match deed {
        None => "Written",
        Some(Deed::Edit) => "Edited",
        Some(Deed::Delete) => "Deleted",
        Some(Deed::Restore) => "Restored",
    }
}

/// For how long a page of a board stays right: its version, and until when "5 minutes ago" is true.
pub(crate) fn tag(board: &BoardAt, now: SystemTime) -> String {
    let fresh = crate::text::moment::freshness(board.time(), now);
    format!("{}-{}-{fresh}", board.version(), board.newest().number)
}
