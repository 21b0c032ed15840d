//! What has come of a login since a moment.

use super::grant::Mark;
use super::logins::Logins;
use octo_model::{Caller, ToolError};

/// How it stood with a login at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Moment {
    login: Option<Mark>,
    failure: Option<String>,
}

/// What has come of it since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Came {
    Nothing,
    /// There is a login that was not there before.
    Login,
    Failure(String),
}

impl Logins {
    pub(crate) async fn moment(&self, caller: &Caller, server: &str) -> Result<Moment, ToolError> {
        let account = (self.0.spec(server)?.owner(caller), server.to_owned());
        let failure = self.0.failure(&account);
        // One that cannot be read or used is none.
        let held = self.0.newest(&account.0, server).await.ok().flatten();
        let login = held.filter(|held| held.grant.lost.is_none()).map(|held| held.mark());
        Ok(Moment { login, failure })
    }
}

impl Moment {
    pub(crate) fn until(&self, now: &Self) -> Came {
        match &now.failure {
            _ if now.login.is_some() && now.login != self.login => Came::Login,
            Some(why) if now.failure != self.failure => Came::Failure(why.clone()),
            _ => Came::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_login_is_one_and_the_same_is_none() {
        let moment = |login: Option<u64>, failure: Option<&str>| Moment {
            login: login.map(|revision| (revision, 0)),
            failure: failure.map(str::to_owned),
        };
        for (before, now, came) in [
            (moment(None, None), moment(None, None), Came::Nothing),
            (moment(Some(1), None), moment(Some(1), None), Came::Nothing),
            (moment(Some(1), None), moment(None, None), Came::Nothing),
            (moment(None, None), moment(Some(1), None), Came::Login),
            (moment(Some(1), Some("x")), moment(Some(2), None), Came::Login),
            (moment(Some(1), Some("x")), moment(Some(1), Some("x")), Came::Nothing),
            (moment(Some(1), None), moment(Some(1), Some("x")), Came::Failure("x".to_owned())),
        ] {
            assert_eq!(before.until(&now), came, "{before:?} {now:?}");
        }
    }
}
