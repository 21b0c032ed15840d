//! The HTTP client: one pool of connections for each upstream, one set of root certificates for all.

use crate::fail::Fail;
use bytes::Bytes;
use http_body_util::Full;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use octo_grants::Connector;
use std::sync::OnceLock;
use std::time::Duration;

pub(crate) type Client = legacy::Client<Connector, Full<Bytes>>;

/// Connections that nobody uses are kept this long.
const IDLE: Duration = Duration::from_secs(60);

pub(crate) fn client() -> Result<Client, Fail> {
    Ok(legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .timer(TokioTimer::new())
        .build(connector()?))
}

fn connector() -> Result<Connector, Fail> {
    static SHARED: OnceLock<Connector> = OnceLock::new();
    if let Some(ready) = SHARED.get() {
        return Ok(ready.clone());
    }
    let fresh =
        octo_grants::connector().map_err(|error| Fail::NotSent(format!("root certificates: {error}")))?;
    Ok(SHARED.get_or_init(|| fresh).clone())
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
