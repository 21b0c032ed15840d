//! How it stands with a login.

use super::grant::Held;
use super::shelf::{Account, Shelf};
use octo_model::ToolError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Nobody has logged in, or they have logged out.
    None,
    /// A person has been asked and has not finished.
    Waiting,
    Connected,
    /// There was a login, and it is no longer good.
    Lost,
}

impl State {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Waiting => "waiting",
            Self::Connected => "connected",
            Self::Lost => "lost",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub state: State,
    pub issuer: Option<String>,
    pub scopes: Vec<String>,
    /// What the server has asked for since, and the login does not have.
    pub missing: Vec<String>,
    /// Seconds until the access token ends; it is renewed by itself where `renews` says so.
    pub expires_in: Option<i64>,
    pub renews: bool,
    /// Seconds that a login which waits can still be finished in.
    pub waits: Option<i64>,
    /// Why there is no login any more, or why the last one came to nothing.
    pub why: Option<String>,
}

pub(super) async fn status(shelf: &Shelf, account: &Account) -> Result<Status, ToolError> {
    let now = shelf.now();
    let (owner, server) = account;
    let held = shelf.newest(owner, server).await?;
    let waits = shelf.store.waits(owner, server, now).await?;
    let wanted = shelf.challenge(account).map(|challenge| challenge.scopes).unwrap_or_default();
    let mut status = held.map_or_else(Status::none, |held| Status::of(held, now, wanted));
    if let Some(waiting) = waits {
        status.waits = Some(waiting.expires.saturating_sub(now));
        if status.state != State::Connected {
            status.state = State::Waiting;
        }
    }
    if status.why.is_none() && status.state != State::Connected {
        status.why = shelf.failure(account);
    }
    Ok(status)
}

impl Status {
    fn none() -> Self {
        Self {
            state: State::None,
            issuer: None,
            scopes: Vec::new(),
            missing: Vec::new(),
            expires_in: None,
            renews: false,
            waits: None,
            why: None,
        }
    }

    fn of(held: Held, now: i64, wanted: Vec<String>) -> Self {
        let grant = held.grant;
        let why = grant.loss(now);
        Self {
            state: if why.is_some() { State::Lost } else { State::Connected },
            issuer: grant.source.is_some().then_some(held.slot.issuer),
            missing: wanted.into_iter().filter(|scope| !grant.scopes.contains(scope)).collect(),
            expires_in: grant.expires.map(|expires| expires.saturating_sub(now).max(0)),
            renews: grant.refresh.is_some(),
            scopes: grant.scopes,
            waits: None,
            why,
        }
    }
}
