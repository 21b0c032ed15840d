//! HTTP client: one connection pool per upstream, one set of root certificates for all.

use crate::error::UpstreamError;
use bytes::Bytes;
use http_body_util::Full;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use octo_grants::{Connector, Net};
use std::time::Duration;

pub(crate) type HttpClient = legacy::Client<Connector, Full<Bytes>>;

/// Unused connections are closed after this time.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Connects to the server at `url` only.
#[expect(clippy::disallowed_methods, reason = "a client with streams, on the connector that Net hands out")]
pub(crate) fn build_client(net: &Net, url: &str) -> Result<HttpClient, UpstreamError> {
    let way = net
        .for_configured_host(url)
        .map_err(|_| UpstreamError::NotSent(format!("not an http or https URL: {url}")))?;
    let connector =
        way.connector().map_err(|error| UpstreamError::NotSent(format!("root certificates: {error}")))?;
    Ok(legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(POOL_IDLE_TIMEOUT)
        .timer(TokioTimer::new())
        .build(connector))
}

/// Maps a failed request to an error: whether the server can have seen it.
pub(super) fn classify_error(error: &legacy::Error) -> UpstreamError {
    let why = root_cause(error);
    let inner = std::error::Error::source(error).and_then(|source| source.downcast_ref::<hyper::Error>());
    if error.is_connect() || inner.is_some_and(hyper::Error::is_canceled) {
        UpstreamError::NotSent(why)
    } else {
        UpstreamError::ConnectionReset(why)
    }
}

/// The innermost cause is the most specific.
pub(super) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
