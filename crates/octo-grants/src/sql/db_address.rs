//! Address of a database for a client library, which gets a connected stream and never dials by itself.

use super::db_stream::Stream;
use super::dsn::{DbHost, Login};
use crate::Net;
use octo_model::{Secret, ToolError};
use rustix::net::sockopt;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// An idle connection is checked after this time, and closed after [`KEEPALIVE_PROBES`] checks without an answer.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_PROBES: u32 = 3;
/// How long sent data may stay unacknowledged before the connection is closed.
const UNACKNOWLEDGED_TIMEOUT: Duration = Duration::from_secs(20);

/// Hosts, credentials and TLS mode of a connection string. Has no `Debug`.
#[derive(Clone)]
pub struct DbAddress(Login);

impl DbAddress {
    /// An error names the connection and never a part of its text.
    pub fn parse(name: &str, dsn: &Secret, net: &Net) -> Result<Self, ToolError> {
        Login::parse(name, dsn, net).map(Self)
    }

    pub fn host_count(&self) -> usize {
        self.0.hosts.len()
    }

    /// All hosts, without secrets.
    pub fn host_text(&self) -> String {
        self.0.host_text()
    }

    pub fn user(&self) -> &str {
        &self.0.user
    }

    pub fn password(&self) -> Option<&Secret> {
        self.0.password.as_ref()
    }

    pub fn database(&self) -> &str {
        &self.0.database
    }

    /// `options` of the connection string, for the server.
    pub fn server_options(&self) -> Option<&str> {
        self.0.options.as_deref()
    }

    /// For connecting, TLS and login together.
    pub fn connect_timeout(&self) -> Duration {
        self.0.connect_timeout
    }

    /// Connects to the host with this index, with TLS as the connection string requires it. A connection whose
    /// other end has vanished fails within half a minute.
    pub async fn connect(
        &self,
        host: usize,
    ) -> io::Result<impl AsyncRead + AsyncWrite + Unpin + Send + 'static + use<>> {
        let missing = || io::Error::from(io::ErrorKind::AddrNotAvailable);
        let (place, port) = self.0.hosts.get(host).ok_or_else(missing)?;
        let stream = Stream::connect(&self.0.net, place, *port, &self.0.tls).await?;
        if matches!(place, DbHost::Tcp(_)) {
            detect_dead_peers(&stream)?;
        }
        Ok(stream)
    }
}

fn detect_dead_peers(stream: &Stream) -> rustix::io::Result<()> {
    let fd = stream.fd();
    sockopt::set_socket_keepalive(fd, true)?;
    sockopt::set_tcp_keepidle(fd, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(fd, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(fd, KEEPALIVE_PROBES)?;
    let timeout = u32::try_from(UNACKNOWLEDGED_TIMEOUT.as_millis()).unwrap_or(u32::MAX);
    sockopt::set_tcp_user_timeout(fd, timeout)
}
