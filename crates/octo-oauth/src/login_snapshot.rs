//! Snapshots of a login, to detect its progress.

use crate::login_registry::LoginRegistry;
use crate::login_spec::LoginKey;
use crate::token_set::LoginVersion;

/// State of a login at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginSnapshot {
    login: Option<LoginVersion>,
    failure: Option<String>,
}

/// Change of a login since a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginProgress {
    Unchanged,
    /// There is a new login.
    LoggedIn,
    Failure(String),
}

impl LoginSnapshot {
    pub(crate) async fn of(registry: &LoginRegistry, account: &LoginKey) -> Self {
        // An unreadable or unusable login counts as none.
        let held = registry.newest(&account.0, &account.1).await.ok().flatten();
        let login = held.filter(|held| held.tokens.lost.is_none()).map(|held| held.version());
        Self { login, failure: registry.failure(account) }
    }

    pub fn progress_to(&self, now: &Self) -> LoginProgress {
        match &now.failure {
            _ if now.login.is_some() && now.login != self.login => LoginProgress::LoggedIn,
            Some(why) if now.failure != self.failure => LoginProgress::Failure(why.clone()),
            _ => LoginProgress::Unchanged,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_login_is_one_and_the_same_is_none() {
        let moment = |login: Option<u64>, failure: Option<&str>| LoginSnapshot {
            login: login.map(|revision| (revision, 0)),
            failure: failure.map(str::to_owned),
        };
        for (before, now, came) in [
            (moment(None, None), moment(None, None), LoginProgress::Unchanged),
            (moment(Some(1), None), moment(Some(1), None), LoginProgress::Unchanged),
            (moment(Some(1), None), moment(None, None), LoginProgress::Unchanged),
            (moment(None, None), moment(Some(1), None), LoginProgress::LoggedIn),
            (moment(Some(1), Some("x")), moment(Some(2), None), LoginProgress::LoggedIn),
            (moment(Some(1), Some("x")), moment(Some(1), Some("x")), LoginProgress::Unchanged),
            (moment(Some(1), None), moment(Some(1), Some("x")), LoginProgress::Failure("x".to_owned())),
        ] {
            assert_eq!(before.progress_to(&now), came, "{before:?} {now:?}");
        }
    }
}
