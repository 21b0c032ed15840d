//! How long to wait for a login: until it expires, and after the callback for the token exchange.

use std::time::Duration;
use tokio::time::Instant;

/// Timeout of the token exchange at the authorization server, in this process or another.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(30);

/// Deadline of one wait for a login.
#[derive(Default)]
pub struct LoginDeadline {
    exchange: Option<Instant>,
}

impl LoginDeadline {
    /// Returns the deadline, given for how long the login is still pending. Another login may begin during the wait.
    pub fn update(&mut self, pending_secs: Option<i64>, now: Instant) -> Instant {
        match pending_secs {
            Some(left) => {
                self.exchange = None;
                now + Duration::from_secs(left.max(1).cast_unsigned())
            }
            None => *self.exchange.get_or_insert(now + EXCHANGE_TIMEOUT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exchange_has_one_timeout_until_another_login_begins() {
        let (begin, mut deadline) = (Instant::now(), LoginDeadline::default());
        let later = |seconds| begin + Duration::from_secs(seconds);
        assert_eq!(deadline.update(Some(600), begin), later(600));
        assert_eq!(deadline.update(None, begin), begin + EXCHANGE_TIMEOUT);
        assert_eq!(deadline.update(None, later(10)), begin + EXCHANGE_TIMEOUT);
        assert!(deadline.update(Some(0), later(20)) > later(20));
        assert_eq!(deadline.update(None, later(30)), later(30) + EXCHANGE_TIMEOUT);
    }
}
