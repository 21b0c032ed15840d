//! Outgoing connections, for every client in the binary.

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use std::io;
use std::time::Duration;

/// Connects to `http` and `https` addresses without Nagle's delay.
pub type Connector = HttpsConnector<HttpConnector>;

/// A connector for servers that the operator has named in the settings.
pub fn connector() -> io::Result<Connector> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(Duration::from_secs(10)));
    tcp.set_keepalive(Some(Duration::from_secs(30)));
    Ok(HttpsConnectorBuilder::new()
        .with_provider_and_native_roots(rustls::crypto::aws_lc_rs::default_provider())?
        .https_or_http()
        .enable_http1()
        .enable_http2()
        .wrap_connector(tcp))
}
