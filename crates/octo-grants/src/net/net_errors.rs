//! Network errors for callers. They do not reveal whether a port of a refused address is open: a refused address is
//! never contacted.

use super::dial::DialError;
use http::Method;
use octo_model::{Kind, Remedy, ToolError};
use std::error::Error;
use std::time::Duration;

pub(super) fn dial_error(host: &str, fail: &DialError) -> ToolError {
    match fail {
        DialError::NotAHost => {
            ToolError::invalid("Invalid host.").hint("Give a name such as example.com, or an address.")
        }
        DialError::Unresolved(_) => ToolError::unavailable(format!("Cannot resolve the name `{host}`."))
            .hint("Check its spelling, or try again later.")
            .detail(error_chain(fail)),
        DialError::Refused => {
            let own = if is_loopback(host) { LOCAL_SERVER_HINT } else { "" };
            ToolError::denied(format!(
                "`{host}` is not on the public internet, and only public hosts are allowed."
            ))
            .hint(format!(
                "Private addresses are refused; the operator can allow this one with net.allow.{own}"
            ))
            .remedy(Remedy::AllowHost { host: host.to_owned() })
        }
        DialError::Unlisted => {
            ToolError::denied(format!("`{host}` is not one of the hosts that tools may reach."))
                .hint("Use another host; the operator can add this one to net.only.")
                .remedy(Remedy::settings(&["net.only"]))
        }
        DialError::Own => ToolError::denied("Tools cannot send requests to the hub itself.")
            .hint("Call its tools directly."),
        DialError::Unreachable(_) => ToolError::unavailable(format!("Cannot connect to `{host}`."))
            .hint("Check host and port, or try again later.")
            .detail(error_chain(fail)),
    }
}

/// How to reach a server that an agent has started itself.
const LOCAL_SERVER_HINT: &str = " A server that was started with shell_start can be reached when the settings have \
     `shell.local_servers: true`; otherwise, query it in the same shell_exec command that starts it.";

fn is_loopback(host: &str) -> bool {
    let name = host.trim_end_matches('.').trim_matches(['[', ']']);
    name.eq_ignore_ascii_case("localhost")
        || name.to_ascii_lowercase().ends_with(".localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Error of a request without a response.
pub(super) fn request_error(host: &str, method: &Method, error: &(dyn Error + 'static)) -> ToolError {
    if let Some(fail) = find_cause::<DialError>(error) {
        return dial_error(host, fail);
    }
    if let Some(tls) = find_cause::<rustls::Error>(error) {
        return ToolError::unavailable(format!("The TLS connection to `{host}` failed: {tls}."))
            .hint("Check that the server speaks https there, that its certificate is valid, and that this machine has root certificates (ca-certificates).")
            .detail(error_chain(error));
    }
    let error = ToolError::unavailable(format!("`{host}` closed the connection without a valid response."))
        .hint("Try again; if it persists, the server does not speak HTTP there or refuses this request.")
        .detail(error_chain(error));
    lost_response(method, error)
}

/// Error of a response whose body cannot be read.
pub(super) fn body_error(host: &str, method: &Method, error: &(dyn Error + 'static)) -> ToolError {
    let message = format!("The response of `{host}` was interrupted or could not be decoded.");
    let error = ToolError::unavailable(message)
        .hint("Try again; if it persists, the server sends a malformed response.")
        .detail(error_chain(error));
    lost_response(method, error)
}

/// A request that was sent may have taken effect; only those that are idempotent can be repeated anyway.
fn lost_response(method: &Method, error: ToolError) -> ToolError {
    if method.is_idempotent() {
        return error;
    }
    error.hint("The request may have taken effect: check before you repeat it.").with_unknown_outcome()
}

pub(super) fn timeout_error(host: &str, limit: Duration) -> ToolError {
    ToolError::new(
        Kind::Timeout,
        format!("`{host}` did not respond completely within {} seconds.", limit.as_secs_f32()),
    )
    .hint("Try again with a longer timeout, or request less data.")
}

fn find_cause<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    std::iter::successors(Some(error), |error| inner_error(*error)).find_map(|error| error.downcast_ref())
}

fn error_chain(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| inner_error(*error));
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// The error that an error wraps. For an `io::Error`, `source` skips it and returns its source.
fn inner_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
        Some(inside) => Some(inside),
        None => error.source(),
    }
}
