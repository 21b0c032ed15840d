//! The HTTP client: one pool of connections for each upstream, one set of root certificates for all.

use crate::fail::Fail;
use bytes::Bytes;
use http_body_util::Full;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use octo_grants::{Connector, Net};
use std::time::Duration;

pub(crate) type Client = legacy::Client<Connector, Full<Bytes>>;

/// Connections that nobody uses are kept this long.
const IDLE: Duration = Duration::from_secs(60);

/// Connects to the server at `url` and to no other.
#[expect(clippy::disallowed_methods, reason = "a client with streams, on the connector that Net hands out")]
pub(crate) fn client(net: &Net, url: &str) -> Result<Client, Fail> {
    let way = net.named(url).map_err(|_| Fail::NotSent(format!("{url} is not an http or https address")))?;
    let connector = way.connector().map_err(|error| Fail::NotSent(format!("root certificates: {error}")))?;
    Ok(legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .timer(TokioTimer::new())
        .build(connector))
}

/// What a failed request means: whether the server can have seen it.
pub(super) fn fail(error: &legacy::Error) -> Fail {
    let why = deepest(error);
    let inner = std::error::Error::source(error).and_then(|source| source.downcast_ref::<hyper::Error>());
    if error.is_connect() || inner.is_some_and(hyper::Error::is_canceled) {
        Fail::NotSent(why)
    } else {
        Fail::Reset(why)
    }
}

/// The innermost cause says the most.
pub(super) fn deepest(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
