//! A hub in the namespace, and calls of its tools.

use super::namespaces::HubPrivilege;
use anyhow::{Context, Result, ensure};
use octo_tests::http_client::HttpClient;
use octo_tests::hub_process::{HubHome, RunningHub};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::task::JoinSet;

/// A user without privileges.
const REGULAR_USER: u32 = 4321;

/// Concurrent calls.
const MAX_CONCURRENT_CALLS: usize = 12;

/// Whether the hub's egress rules are in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EgressRules {
    /// Every address is allowed: what arrives then is known to be an attack.
    Off,
    /// Default settings.
    On,
}

pub const BOTH_RULES: [EgressRules; 2] = [EgressRules::Off, EgressRules::On];

#[derive(Clone)]
pub struct NetnsHub(Arc<Inner>);

struct Inner {
    server: RunningHub,
    http: HttpClient,
    _home: HubHome,
}

/// A tool call and its reply.
pub struct CallRecord {
    pub tool: &'static str,
    pub arguments: Value,
    pub reply: Value,
}

impl NetnsHub {
    pub async fn start(rules: EgressRules) -> Result<Self> {
        Self::start_with(rules, HubPrivilege::Root).await
    }

    pub async fn start_with(rules: EgressRules, power: HubPrivilege) -> Result<Self> {
        let allow: &[&str] = if rules == EgressRules::Off { &["0.0.0.0/0", "::/0"] } else { &[] };
        let settings = json!({"toolboxes": {"browser": true}, "net": {"allow": allow}});
        let home = match power {
            HubPrivilege::Root => HubHome::new(&settings)?,
            HubPrivilege::Unprivileged => HubHome::for_user(&settings, REGULAR_USER)?,
        };
        let server = home.serve().await?;
        Ok(Self(Arc::new(Inner { server, http: HttpClient::default(), _home: home })))
    }

    /// The hub's port.
    pub fn port(&self) -> Result<u16> {
        let (_, port) = self.0.server.base_url.rsplit_once(':').context("no port")?;
        Ok(port.parse()?)
    }

    pub async fn call(&self, tool: &str, arguments: &Value) -> Result<Value> {
        let url = format!("{}/tools/{tool}", self.0.server.base_url);
        let reply = self.0.http.post(&url, &[], arguments).await?.json().await?;
        ensure!(reply["success"].is_boolean(), "{tool} {arguments}: {reply}");
        Ok(reply)
    }

    /// Makes many calls concurrently, in no particular order.
    pub async fn calls(
        &self,
        calls: impl IntoIterator<Item = (&'static str, Value)>,
    ) -> Result<Vec<CallRecord>> {
        let (mut said, mut running) = (Vec::new(), JoinSet::new());
        for (tool, arguments) in calls {
            if running.len() >= MAX_CONCURRENT_CALLS {
                said.push(running.join_next().await.context("no call")???);
            }
            let hub = self.clone();
            running.spawn(async move {
                let reply = hub.call(tool, &arguments).await?;
                anyhow::Ok(CallRecord { tool, arguments, reply })
            });
        }
        while let Some(done) = running.join_next().await {
            said.push(done??);
        }
        Ok(said)
    }
}

/// The error kind; empty if there is no error.
pub fn error_kind(reply: &Value) -> &str {
    reply["error"]["kind"].as_str().unwrap_or_default()
}
