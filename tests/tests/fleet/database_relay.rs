//! A relay to PostgreSQL that a test can cut.

use anyhow::{Context, Result};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

/// Cut when dropped.
pub struct DatabaseRelay {
    /// Connection string of the database through the relay.
    pub address: String,
    task: AbortHandle,
}

impl DatabaseRelay {
    pub async fn start() -> Result<Self> {
        let target = std::env::var("POSTGRES").context("POSTGRES is not set: run scripts/services")?;
        let (login, rest) = target.split_once('@').context("no user")?;
        let (host, name) = rest.split_once('/').context("no database")?;
        let host = host.to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = format!("{login}@{}/{name}", listener.local_addr()?);
        let task = tokio::spawn(async move {
            // Dropped with the task, which ends the connections.
            let mut connections = JoinSet::new();
            while let Ok((mut client, _)) = listener.accept().await {
                let host = host.clone();
                connections.spawn(async move {
                    if let Ok(mut server) = TcpStream::connect(&host).await {
                        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                    }
                });
            }
        });
        Ok(Self { address, task: task.abort_handle() })
    }
}

impl Drop for DatabaseRelay {
    fn drop(&mut self) {
        self.task.abort();
    }
}
