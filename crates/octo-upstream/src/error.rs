//! Errors of an exchange with a server, and the tool errors they map to.

use octo_model::{Kind, Remedy, RpcError, ToolError};
use octo_wire::code;
use std::time::Duration;

/// Error detail of a 403: the caller is authenticated but not authorized.
pub(crate) const FORBIDDEN_DETAIL: &str = "HTTP status 403";

#[derive(Debug, Clone)]
pub(crate) enum UpstreamError {
    /// The server returned a JSON-RPC error.
    Rpc(RpcError),
    /// The request never reached the server, so it can be sent again.
    NotSent(String),
    /// The connection broke before the first byte of a response; the server may have read the request.
    ConnectionReset(String),
    /// The connection ended while the request was active.
    ConnectionLost(String),
    /// The server no longer knows the session; it did not process the request.
    SessionExpired,
    /// 401 or 403.
    Unauthorized(u16),
    /// A login exists but cannot be used now, with the reason.
    CredentialUnusable(Box<ToolError>),
    /// The process may not start, with the reason.
    StartRefused(Box<ToolError>),
    /// Another HTTP status without a JSON-RPC error.
    Status {
        code: u16,
        text: String,
        retry_after: Option<Duration>,
    },
    TooLarge(usize),
    /// Invalid protocol data.
    Protocol(String),
    Timeout(Duration),
}

pub(crate) type UpstreamResult<T = octo_model::JsonObject> = Result<T, UpstreamError>;

impl std::fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rpc(error) => write!(f, "server returned an error: {} ({})", error.message, error.code),
            Self::NotSent(why) => write!(f, "server cannot be reached: {why}"),
            Self::ConnectionReset(why) | Self::ConnectionLost(why) => {
                write!(f, "connection lost: {why}")
            }
            Self::SessionExpired => f.write_str("the session expired"),
            Self::Unauthorized(_) => f.write_str("needs a login"),
            Self::CredentialUnusable(error) | Self::StartRefused(error) => f.write_str(&error.message),
            Self::Status { code, text, .. } => write!(f, "server returned HTTP status {code}: {text}"),
            Self::TooLarge(limit) => write!(f, "message exceeds the limit of {limit} bytes"),
            Self::Protocol(why) => write!(f, "server does not keep to the protocol: {why}"),
            Self::Timeout(after) => write!(f, "server did not answer within {}", format_seconds(*after)),
        }
    }
}

impl UpstreamError {
    pub(crate) fn credential(error: ToolError) -> Self {
        Self::CredentialUnusable(Box::new(error))
    }

    pub(crate) fn refused(error: ToolError) -> Self {
        Self::StartRefused(Box::new(error))
    }

    /// Error for the caller of the tool.
    pub(crate) fn to_tool_error(&self, name: &str) -> ToolError {
        let again = "Try again in a moment; the hub reconnects automatically.";
        let error = match self {
            Self::Rpc(error) => return rpc_error(name, error),
            Self::Unauthorized(403) => return insufficient_rights_error(name).detail(FORBIDDEN_DETAIL),
            Self::Unauthorized(status) => {
                return login_required_error(name).detail(format!("HTTP status {status}"));
            }
            Self::CredentialUnusable(error) | Self::StartRefused(error) => return error.as_ref().clone(),
            Self::NotSent(_) | Self::SessionExpired => {
                ToolError::unavailable(format!("{name} cannot be reached.")).hint(again)
            }
            Self::ConnectionReset(_) | Self::ConnectionLost(_) => {
                ToolError::unavailable(format!("Lost the connection to {name} before it answered."))
                    .hint("The call may have taken effect: check before repeating it.")
                    .with_unknown_outcome()
            }
            Self::Status { code, retry_after, .. } => status_error(name, *code, *retry_after),
            Self::TooLarge(limit) => {
                ToolError::new(Kind::TooLarge, format!("The reply from {name} exceeds {limit} bytes."))
                    .hint("Request less data at once.")
            }
            Self::Protocol(_) => {
                ToolError::new(Kind::Internal, format!("{name} sent a response that violates the protocol."))
                    .hint("This is a defect of the server. Use another tool.")
            }
            Self::Timeout(after) => timeout_error(name, *after),
        };
        error.detail(self)
    }
}

fn format_seconds(time: Duration) -> String {
    let seconds = time.as_secs_f32();
    if seconds < 10.0 { format!("{seconds:.1} s") } else { format!("{seconds:.0} s") }
}

pub(crate) fn timeout_error(name: &str, after: Duration) -> ToolError {
    ToolError::new(Kind::Timeout, format!("{name} did not answer within {}.", format_seconds(after)))
        .hint("Request less data at once, or try again later.")
}

fn login_required_error(name: &str) -> ToolError {
    ToolError::new(Kind::Unauthorized, format!("{name} needs a login."))
        .remedy(Remedy::Login { server: name.to_owned() })
}

/// The caller is authenticated but lacks the rights.
fn insufficient_rights_error(name: &str) -> ToolError {
    ToolError::new(Kind::Unauthorized, format!("{name} needs a login with more rights for this."))
        .hint("A new login requests the missing rights.")
        .remedy(Remedy::Login { server: name.to_owned() })
}

fn rpc_error(name: &str, error: &RpcError) -> ToolError {
    /// A URL has to be opened first (2025-11-25 only).
    const OPEN_URL: i64 = -32042;
    /// Timeout of the TypeScript SDK on the server's side.
    const SDK_TIMEOUT: i64 = -32001;
    let kind = match error.code {
        code::INVALID_PARAMS | code::MISSING_CAPABILITY => Kind::Invalid,
        code::METHOD_NOT_FOUND | code::LEGACY_NOT_FOUND => Kind::NotFound,
        OPEN_URL => Kind::Unauthorized,
        SDK_TIMEOUT => Kind::Timeout,
        _ => Kind::Internal,
    };
    let message = if error.message.is_empty() {
        format!("{name} returned error {}.", error.code)
    } else {
        error.message.clone()
    };
    ToolError::new(kind, message).rpc(error.clone())
}

fn status_error(name: &str, status: u16, retry_after: Option<Duration>) -> ToolError {
    let message = format!("{name} returned HTTP status {status}.");
    let error = match status {
        413 => ToolError::new(Kind::TooLarge, message).hint("Send less data at once."),
        408 | 504 => ToolError::new(Kind::Timeout, message).hint("Try again later."),
        429 => ToolError::new(Kind::RateLimited, message).hint("Try again later."),
        503 => ToolError::unavailable(message).hint("Try again later."),
        // A proxy says this of a server that may have received the call.
        500.. => ToolError::unavailable(message)
            .hint("It may have taken effect: check before you call again.")
            .with_unknown_outcome(),
        _ => ToolError::new(Kind::Internal, message).hint("Ask the operator to check the URL of the server."),
    };
    match retry_after {
        Some(wait) => error.retry_after(wait),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_become_kinds_and_stay_whole() {
        let cases = [
            (-32602, Kind::Invalid),
            (-32601, Kind::NotFound),
            (-32002, Kind::NotFound),
            (-32042, Kind::Unauthorized),
            (-32603, Kind::Internal),
            (7, Kind::Internal),
        ];
        for (code, kind) in cases {
            let rpc = RpcError { code, message: "no".into(), data: Some(octo_model::Json::null()) };
            let error = UpstreamError::Rpc(rpc.clone()).to_tool_error("x");
            assert_eq!(error.kind, kind, "{code}");
            assert_eq!(error.rpc.as_deref(), Some(&rpc));
        }
    }

    #[test]
    fn a_lost_call_says_that_it_may_have_happened() {
        let error = UpstreamError::ConnectionLost("gone".into()).to_tool_error("x");
        assert_eq!(error.kind, Kind::Unavailable);
        assert!(error.is_outcome_unknown && error.retry_delay().is_none());
        assert!(error.hint.unwrap().contains("may have"));
        assert_eq!(UpstreamError::Unauthorized(401).to_tool_error("x").kind, Kind::Unauthorized);
    }
}
