//! Status of a login.

use crate::login_registry::LoginRegistry;
use crate::login_spec::LoginKey;
use crate::token_set::StoredLogin;
use octo_model::ToolError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginState {
    /// No login, or logged out.
    None,
    /// A person was prompted and has not finished.
    Waiting,
    Connected,
    /// There was a login, and it is no longer valid.
    Lost,
}

impl LoginState {
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
pub struct LoginStatus {
    pub state: LoginState,
    pub issuer: Option<String>,
    pub scopes: Vec<String>,
    /// Scopes that the server has demanded since, and the login lacks.
    pub missing: Vec<String>,
    /// Seconds until the access token expires; refreshed automatically if `refreshes` is set.
    pub expires_in: Option<i64>,
    pub refreshes: bool,
    /// Seconds until a pending login expires.
    pub pending_secs: Option<i64>,
    /// Why the login was lost, or why the last attempt failed.
    pub reason: Option<String>,
}

pub(crate) async fn login_status(
    registry: &LoginRegistry,
    account: &LoginKey,
) -> Result<LoginStatus, ToolError> {
    let now = registry.now();
    let (owner, server) = account;
    let held = registry.newest(owner, server).await?;
    let waits = registry.store.find_pending(owner, server, now).await?;
    let wanted = registry.challenge(account).map(|challenge| challenge.scopes).unwrap_or_default();
    let mut status = held.map_or_else(LoginStatus::none, |held| LoginStatus::of(held, now, wanted));
    if let Some(waiting) = waits {
        status.pending_secs = Some(waiting.expires.saturating_sub(now));
        if status.state != LoginState::Connected {
            status.state = LoginState::Waiting;
        }
    }
    if status.reason.is_none() && status.state != LoginState::Connected {
        status.reason = registry.failure(account);
    }
    Ok(status)
}

impl LoginStatus {
    fn none() -> Self {
        Self {
            state: LoginState::None,
            issuer: None,
            scopes: Vec::new(),
            missing: Vec::new(),
            expires_in: None,
            refreshes: false,
            pending_secs: None,
            reason: None,
        }
    }

    fn of(held: StoredLogin, now: i64, wanted: Vec<String>) -> Self {
        let grant = held.tokens;
        let why = grant.loss_reason(now);
        Self {
            state: if why.is_some() { LoginState::Lost } else { LoginState::Connected },
            issuer: grant.source.is_some().then_some(held.slot.issuer),
            missing: wanted.into_iter().filter(|scope| !grant.scopes.contains(scope)).collect(),
            expires_in: grant.expires.map(|expires| expires.saturating_sub(now).max(0)),
            refreshes: grant.refresh.is_some(),
            scopes: grant.scopes,
            pending_secs: None,
            reason: why,
        }
    }
}
