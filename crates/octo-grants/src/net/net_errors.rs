//! Failures as the caller hears of them. Nothing in here tells an open port of a refused address from a closed one: a
//! refused address was never asked.

use super::dial::DialError;
use octo_model::{Kind, ToolError};
use std::error::Error;
use std::time::Duration;

pub(super) fn dial_error(host: &str, fail: &DialError) -> ToolError {
    match fail {
        DialError::NotAHost => {
            ToolError::invalid("That is not a host.").hint("Give a name such as example.com, or an address.")
        }
        DialError::Unresolved(_) => ToolError::unavailable(format!("The name `{host}` was not found."))
            .hint("Check its spelling, or try again later.")
            .detail(error_chain(fail)),
        DialError::Refused => {
            let own = if is_loopback(host) { LOCAL_SERVER_HINT } else { "" };
            ToolError::denied(format!("`{host}` is not on the public internet, and only that is asked."))
                .hint(format!(
                    "Private addresses are refused; the operator can allow this one with net.allow or OCTOPROX_NET_ALLOW={host}.{own}"
                ))
        }
        DialError::Own => ToolError::denied("Tools cannot send requests to the hub itself.")
            .hint("Call its tools directly."),
        DialError::Unreachable(_) => ToolError::unavailable(format!("`{host}` cannot be connected to."))
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

/// Of a request that got no answer.
pub(super) fn request_error(host: &str, error: &(dyn Error + 'static)) -> ToolError {
    if let Some(fail) = find_cause::<DialError>(error) {
        return dial_error(host, fail);
    }
    if let Some(tls) = find_cause::<rustls::Error>(error) {
        return ToolError::unavailable(format!("There is no secure connection to `{host}`: {tls}."))
            .hint("Check that the server speaks https there and that its certificate is valid.")
            .detail(error_chain(error));
    }
    ToolError::unavailable(format!("`{host}` closed the connection without an answer that can be read."))
        .hint("Try again; if it stays, the server does not speak HTTP there or refuses this request.")
        .detail(error_chain(error))
}

/// Of an answer whose body cannot be had.
pub(super) fn body_error(host: &str, error: &(dyn Error + 'static)) -> ToolError {
    ToolError::unavailable(format!("The answer of `{host}` broke off or could not be decoded."))
        .hint("Try again; if it stays, the server sends something broken.")
        .detail(error_chain(error))
}

pub(super) fn timeout_error(host: &str, limit: Duration) -> ToolError {
    ToolError::new(
        Kind::Timeout,
        format!("`{host}` did not answer fully within {} seconds.", limit.as_secs_f32()),
    )
    .hint("Try again with a longer timeout, or ask for less.")
}

fn find_cause<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    std::iter::successors(Some(error), |error| inner_error(*error)).find_map(|error| error.downcast_ref())
}

fn error_chain(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| inner_error(*error));
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// What an error wraps. An `io::Error` hides it: its source is the source of that.
fn inner_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
        Some(inside) => Some(inside),
        None => error.source(),
    }
}
