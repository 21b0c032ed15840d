//! What a hub needs beside its sources in order to work.

use octo_model::Caller;
use octo_toolkit::BoxFuture;

/// How one thing is.
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

/// One thing that was looked at.
#[derive(Debug, Clone)]
pub struct Check {
    pub name: String,
    pub state: CheckState,
    pub why: Option<String>,
}

/// Looks at everything that `/ready` tells of beside sources.
pub trait ReadinessProbe: Send + Sync {
    /// What decides whether calls can be made at all. Anybody may ask for it, so it is cheap or remembered.
    fn hub_checks(&self) -> BoxFuture<'_, Vec<Check>>;

    /// What else this caller may know.
    fn caller_checks<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Vec<Check>>;
}

/// Nothing to look at.
pub struct NoProbe;

impl ReadinessProbe for NoProbe {
    fn hub_checks(&self) -> BoxFuture<'_, Vec<Check>> {
        Box::pin(async { Vec::new() })
    }

    fn caller_checks<'a>(&'a self, _: &'a Caller) -> BoxFuture<'a, Vec<Check>> {
        Box::pin(async { Vec::new() })
    }
}
