//! A NATS server of one test.

use octo_fabric::{Bus, BusState, NatsBus, NatsCredentials, NatsOptions};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

pub struct NatsServer {
    process: Option<Child>,
    pub port: u16,
    _dir: TempDir,
    arguments: Vec<String>,
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl NatsServer {
    pub fn start() -> Self {
        Self::with_config("")
    }

    /// With these lines in its configuration.
    pub fn with_config(config: &str) -> Self {
        let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
        let file = dir.path().join("nats.conf");
        std::fs::write(&file, format!("listen: \"127.0.0.1:{port}\"\n{config}\n")).unwrap();
        let arguments = vec!["--config".to_owned(), file.display().to_string()];
        let mut server = Self { process: None, port, _dir: dir, arguments };
        server.spawn();
        server
    }

    pub fn spawn(&mut self) {
        let program = std::env::var("NATS_SERVER").expect("NATS_SERVER: run scripts/services install nats");
        let mut command = Command::new(program);
        command.args(&self.arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.process = Some(command.spawn().unwrap());
    }

    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    pub fn options(&self, node: &str) -> NatsOptions {
        NatsOptions {
            servers: vec![format!("nats://127.0.0.1:{}", self.port)],
            credentials: NatsCredentials::None,
            ca_file: None,
            node: node.to_owned(),
            allow_open: true,
        }
    }

    pub async fn bus(&self, node: &str) -> Arc<dyn Bus> {
        connected(&self.options(node)).await
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}

pub async fn connected(options: &NatsOptions) -> Arc<dyn Bus> {
    let bus = NatsBus::connect(options).await.unwrap();
    let mut state = bus.state();
    let connected = state.wait_for(|state| matches!(state, BusState::Connected(_)));
    tokio::time::timeout(Duration::from_secs(20), connected).await.expect("no connection").unwrap();
    Arc::new(bus)
}
