//! Signing in and out as a moderator, and whether a request is a moderator's.

use axum::http::{HeaderMap, header};

use crate::model::{BoardError, check_moderator};

use super::app::App;
use super::ask::Ask;
use super::moderators::LASTS;
use super::pairs::Pairs;
use super::problem::Problem;

/// The names of the cookie; a browser takes the second one only through TLS, and for no other host.
const COOKIE: [&str; 2] = ["board_moderator", "__Host-board_moderator"];

/// The moderator whose key comes with a request.
pub(crate) fn moderator_by_key(app: &App, headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let secret = value.strip_prefix("Bearer ")?;
    app.moderators.find(secret.trim(), app.age())
}

impl Ask {
    /// The name of the moderator whose browser asks.
    pub(crate) fn moderator(&self) -> Option<String> {
        let now = self.app.age();
        self.app.moderators.find(&self.session()?, now)
    }

    /// Whether a moderator asks, by a browser or by a program.
    pub(crate) fn is_moderator(&self) -> bool {
        match self.is_program {
            true => moderator_by_key(&self.app, &self.headers).is_some(),
            false => self.moderator().is_some(),
        }
    }

    /// As [`moderator`](Self::moderator); every page for moderators begins with it.
    ///
    /// # Errors
    /// 404, if there are none; 403.
    pub(crate) fn must_moderate(&self) -> Result<String, Problem> {
        self.must_have_moderators()?;
        self.moderator().ok_or_else(Problem::no_moderator)
    }

    /// The name of the moderator whose program asks.
    ///
    /// # Errors
    /// As [`must_moderate`](Self::must_moderate); 401 without a key.
    pub(crate) fn must_moderate_by_key(&self) -> Result<String, Problem> {
        self.must_have_moderators()?;
        if !self.headers.contains_key(header::AUTHORIZATION) {
            return Err(Problem::no_moderators_key());
        }
        moderator_by_key(&self.app, &self.headers).ok_or_else(Problem::no_moderator)
    }

    /// Signs a moderator in. Returns the secret of the session.
    ///
    /// # Errors
    /// 404, if there are none; 403, tied to the field; 422; 429.
    pub(crate) async fn sign_in(&self, name: &str, passphrase: &str) -> Result<String, Problem> {
        self.must_have_moderators()?;
        let name = check_moderator(name).map_err(BoardError::from)?;
        let moderators = &self.app.moderators;
        let attempt = self.may_try(&moderators.tries, ())?;
        let hash = moderators.passphrase.as_ref();
        let hash = hash.ok_or_else(Problem::not_found)?;
        let fits = self.app.boards.fits(hash, passphrase).await;
        let proven = fits.and_then(|fits| fits.then_some(()).ok_or(BoardError::WrongPassphrase));
        attempt.settle(proven).map_err(|error| {
            if !matches!(error, BoardError::WrongPassphrase) {
                return error.into();
            }
            tracing::warn!(client = %self.client.address, "a moderator's passphrase was wrong");
            Problem::wrong_passphrase()
        })?;
        tracing::info!(client = %self.client.address, name, "a moderator signed in");
        Ok(moderators.begin(name, self.app.age()))
    }

    /// Ends the session of this browser.
    pub(crate) fn sign_out(&self) {
        if let Some(secret) = self.session() {
            self.app.moderators.end(&secret);
        }
    }

    /// The cookie for a session; without one, the cookie that takes it away.
    pub(crate) fn session_cookie(&self, secret: Option<&str>) -> String {
        let is_secure = self.client.is_secure;
        let name = COOKIE[usize::from(is_secure)];
        let secure = if is_secure { "; Secure" } else { "" };
        let (secret, age) = match secret {
            Some(secret) => (secret, LASTS.as_secs()),
            None => ("", 0),
        };
        format!("{name}={secret}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}")
    }

    fn session(&self) -> Option<String> {
        let cookies = self.headers.get(header::COOKIE)?.to_str().ok()?;
        let name = COOKIE[usize::from(self.client.is_secure)];
        Pairs::of_cookies(cookies).get(name).map(str::to_owned)
    }

    fn must_have_moderators(&self) -> Result<(), Problem> {
        match self.app.moderators.are_there() {
            true => Ok(()),
            false => Err(Problem::not_found()),
        }
    }
}
