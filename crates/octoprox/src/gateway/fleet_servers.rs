//! Servers that are programs, in a fleet: one worker runs each, for all fronts.

use crate::app::fleet_leases;
use crate::fleet::{Fleet, NodeServices};
use crate::gateway::UpstreamFactory;
use crate::settings::{Server, Settings};
use octo_model::ToolError;
use octo_ports::{Leases, Pins, ResultStore, Stores};
use octo_toolkit::Source;
use octo_upstream::Upstream;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub struct FleetServers {
    fleet: Fleet,
    leases: Option<Arc<dyn Leases>>,
    results: Arc<dyn ResultStore>,
    /// What this worker runs, or would run.
    services: Mutex<BTreeMap<String, NodeServices>>,
}

impl FleetServers {
    pub fn new(fleet: Fleet, settings: &Settings, stores: &Stores) -> Self {
        let (leases, results) = (fleet_leases(settings, stores), Arc::clone(&stores.results));
        Self { fleet, leases, results, services: Mutex::default() }
    }

    /// Adds or replaces a server. Returns its source, if this node is a front.
    pub fn put(
        &self,
        name: &str,
        server: &Server,
        factory: &Arc<UpstreamFactory>,
        pins: &Arc<dyn Pins>,
    ) -> Result<Option<Arc<dyn Source>>, ToolError> {
        self.remove(name);
        let roles = self.fleet.roles();
        if roles.worker {
            let (key, server) = (name.to_owned(), server.clone());
            let (factory, pins) = (Arc::clone(factory), Arc::clone(pins));
            let start = move || {
                let spec = factory.upstream_spec(&key, &server, &pins)?;
                Ok(Upstream::start(spec) as Arc<dyn Source>)
            };
            let service = self.fleet.serve_server(self.leases.clone(), name, start)?;
            self.lock().insert(name.to_owned(), service);
        }
        roles.front.then(|| self.fleet.server_source(name, &self.results)).transpose()
    }

    /// Stops running a server, after its calls.
    pub fn remove(&self, name: &str) {
        self.fleet.forget_server(name);
        let service = self.lock().remove(name);
        if let Some(service) = service {
            tokio::spawn(service.drain());
        }
    }

    pub async fn drain(&self) {
        let services = std::mem::take(&mut *self.lock());
        futures_util::future::join_all(services.into_values().map(NodeServices::drain)).await;
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, NodeServices>> {
        self.services.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
