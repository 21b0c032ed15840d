//! What this node tells the others about itself.

use crate::fleet::roles::Roles;
use crate::fleet::service_registry::ServiceRegistry;
use octo_fabric::{AuditStatus, NodeReport, NodeStatus};
use octo_ports::AuditLog;
use octo_web::RenderMetrics;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

pub struct NodeReporter {
    name: String,
    roles: Roles,
    started: Instant,
    services: ServiceRegistry,
    hub: OnceLock<ReportedHub>,
}

/// Known once the hub of this node is built.
struct ReportedHub {
    audit: Arc<dyn AuditLog>,
    metrics: RenderMetrics,
}

impl NodeReporter {
    pub fn new(name: &str, roles: Roles, services: ServiceRegistry) -> Self {
        Self { name: name.to_owned(), roles, started: Instant::now(), services, hub: OnceLock::new() }
    }

    pub fn set_hub(&self, audit: Arc<dyn AuditLog>, metrics: RenderMetrics) {
        let _ = self.hub.set(ReportedHub { audit, metrics });
    }

    /// Calls are recorded by fronts.
    fn audit(&self) -> Option<AuditStatus> {
        let backlog = self.hub.get().filter(|_| self.roles.front)?.audit.backlog();
        Some(AuditStatus {
            queued: u64::try_from(backlog.records).unwrap_or(u64::MAX),
            lag_ms: u64::try_from(backlog.age.as_millis()).unwrap_or(u64::MAX),
        })
    }
}

impl NodeReport for NodeReporter {
    fn status(&self) -> NodeStatus {
        NodeStatus {
            node: self.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            roles: self.roles.names(),
            uptime_seconds: self.started.elapsed().as_secs(),
            services: self.services.all(),
            audit: self.audit(),
        }
    }

    fn metrics(&self) -> String {
        self.hub.get().map(|hub| (hub.metrics)()).unwrap_or_default()
    }
}
