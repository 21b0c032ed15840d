//! One attempt to connect to NATS, for a person who looks for the cause of a failure.

use crate::nats_bus::{connect_options, server_addresses};
use crate::{BusError, NatsOptions};
use async_nats::ConnectErrorKind;

/// The server that accepted this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatsServer {
    pub address: String,
    pub version: String,
}

/// Why no server accepted this node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NatsProblem {
    #[error("{0}")]
    Invalid(BusError),
    #[error("no server answers: {0}")]
    Unreachable(String),
    #[error("the TLS connection failed: {0}")]
    Tls(String),
    #[error("the server refused the credentials")]
    Credentials,
    #[error("the server accepts anybody without credentials")]
    Open,
}

/// Connects once and disconnects again.
pub async fn check_nats(options: &NatsOptions) -> Result<NatsServer, NatsProblem> {
    let servers = server_addresses(&options.servers).map_err(NatsProblem::Invalid)?;
    let connect = connect_options(options, &servers).map_err(NatsProblem::Invalid)?;
    let client = connect.connect(servers).await.map_err(|error| match error.kind() {
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
            NatsProblem::Credentials
        }
        ConnectErrorKind::Tls => NatsProblem::Tls(error.to_string()),
        _ => NatsProblem::Unreachable(error.to_string()),
    })?;
    let server = client.server_info();
    if !server.auth_required && !options.allow_open {
        return Err(NatsProblem::Open);
    }
    Ok(NatsServer { address: format!("{}:{}", server.host, server.port), version: server.version })
}
