//! Readiness checks of a hub besides its sources.

use octo_model::Caller;
use octo_toolkit::BoxFuture;

/// State of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckState {
    Ok,
    /// Some calls will fail.
    Degraded,
    /// No call can be made.
    Failed,
}

impl CheckState {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Degraded => "degraded",
            Self::Failed => "failed",
        }
    }
}

/// Result of one check.
#[derive(Debug, Clone)]
pub struct Check {
    pub name: String,
    pub state: CheckState,
    pub reason: Option<String>,
    /// Sources whose tools fail because of it.
    pub affects: Vec<String>,
}

impl Check {
    pub fn ok(name: impl Into<String>) -> Self {
        Self { name: name.into(), state: CheckState::Ok, reason: None, affects: Vec::new() }
    }

    pub fn problem(name: impl Into<String>, state: CheckState, reason: impl Into<String>) -> Self {
        Self { name: name.into(), state, reason: Some(reason.into()), affects: Vec::new() }
    }
}

/// Runs the checks of `/ready` besides sources.
pub trait ReadinessProbe: Send + Sync {
    /// Checks that decide whether calls can be made at all. Unauthenticated, so they must be cheap or cached.
    fn hub_checks(&self) -> BoxFuture<'_, Vec<Check>>;

    /// Further checks that this caller may see.
    fn caller_checks<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Vec<Check>>;
}

/// Probe without checks.
pub struct NoProbe;

impl ReadinessProbe for NoProbe {
    fn hub_checks(&self) -> BoxFuture<'_, Vec<Check>> {
        Box::pin(async { Vec::new() })
    }

    fn caller_checks<'a>(&'a self, _: &'a Caller) -> BoxFuture<'a, Vec<Check>> {
        Box::pin(async { Vec::new() })
    }
}
