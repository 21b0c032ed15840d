//! Health checks of a backend.

use octo_model::BoxFuture;
use std::time::Duration;

/// A problem, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthProblem {
    pub reason: String,
    pub hint: &'static str,
}

/// Connections of a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionUse {
    pub in_use: usize,
    pub idle: usize,
    /// Operations that wait for a connection.
    pub waiting: usize,
}

/// Checks of a backend, for a person who looks for the cause of a failure.
pub trait HealthCheck: Send + Sync {
    /// Checks that data can be written; returns the free bytes, if they are known.
    fn check_space(&self) -> BoxFuture<'_, Result<Option<u64>, HealthProblem>>;

    /// Connections of this process, if the backend has any.
    fn connections(&self) -> Option<ConnectionUse> {
        None
    }

    /// Checks stored data for damage; `false` if there is none to check. If that takes longer than `timeout`,
    /// what was checked so far counts.
    fn check_integrity(&self, timeout: Duration) -> BoxFuture<'_, Result<bool, HealthProblem>>;
}
