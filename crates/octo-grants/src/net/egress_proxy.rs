//! Egress for programs that open connections by themselves, such as git: they get only a port on loopback, behind
//! which `Net` dials.

use super::{HostList, Net, net_errors};
use crate::chromium::browser_proxy::Proxy;
use octo_model::ToolError;
use std::fmt;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

/// HTTP proxy for one program; closed when dropped.
pub struct EgressProxy(Proxy);

/// A port that is forwarded to one server; closed when dropped, with all connections.
pub struct PortRelay {
    port: u16,
    accepting: JoinHandle<()>,
}

impl Net {
    /// Every target is checked when connecting, including those of redirects.
    pub async fn egress_proxy(&self) -> Result<EgressProxy, ToolError> {
        Proxy::authenticated(self.clone()).await.map(EgressProxy).map_err(no_port_error)
    }

    /// Proxy for a program with its own network, where only it can reach the listener. Other hosts are refused.
    pub(crate) fn proxy_for_hosts(
        &self,
        listener: std::net::TcpListener,
        hosts: HostList,
    ) -> Result<EgressProxy, ToolError> {
        Proxy::for_hosts(listener, self.clone(), hosts).map(EgressProxy).map_err(no_port_error)
    }

    /// Relay to a server that need not speak HTTP, such as ssh. It is checked now and on each connection.
    pub async fn relay(&self, host: &str, port: u16) -> Result<PortRelay, ToolError> {
        const SSH: u16 = 22;
        if port != SSH {
            self.check_port(host, port)?;
        }
        self.addresses(host, port).await?;
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(no_port_error)?;
        let own = listener.local_addr().map_err(no_port_error)?.port();
        let accepting = tokio::spawn(accept_relayed(listener, self.clone(), host.to_owned(), port));
        Ok(PortRelay { port: own, accepting })
    }
}

impl EgressProxy {
    /// Proxy URL for programs, with a random password.
    pub fn url(&self) -> String {
        let address = self.0.address();
        match self.0.credentials() {
            Some(known) => format!("http://{}:{}@{address}", known.user, known.password),
            None => format!("http://{address}"),
        }
    }
}

impl PortRelay {
    /// Port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Debug for EgressProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").finish_non_exhaustive()
    }
}

impl fmt::Debug for PortRelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").field("port", &self.port).finish_non_exhaustive()
    }
}

impl Drop for PortRelay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept_relayed(listener: TcpListener, net: Net, host: String, port: u16) {
    let mut open = JoinSet::new();
    loop {
        let Ok((mut near, _)) = listener.accept().await else {
            // For example too many open files; the program may try again.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (net, host) = (net.clone(), host.clone());
        open.spawn(async move {
            match net.0.dialler.connect(&host, port).await {
                Ok(mut far) => {
                    let _ = near.set_nodelay(true);
                    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                }
                Err(error) => {
                    tracing::debug!(detail = ?net_errors::dial_error(&host, &error).detail, "connection not relayed")
                }
            }
        });
        while open.try_join_next().is_some() {}
    }
}

fn no_port_error(error: std::io::Error) -> ToolError {
    ToolError::unavailable("No free local port.").hint("Try again later.").detail(error)
}
