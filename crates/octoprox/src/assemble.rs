//! The one place where everything is put together: settings become sources, a store and a hub.

use crate::cli::{Failure, Purpose, Session, state_dir};
use crate::client_roots::ClientRoots;
use crate::dialects::with_dialects;
use crate::gateway::Gateway;
use crate::jq;
use crate::probe::HubProbe;
use crate::program::this_program;
use crate::prompts::SHIPPED;
use crate::settings::{Loaded, Settings, WORKSPACE_REMEDY};
use crate::telemetry::{Contents, Talk};
use crate::toolboxes::{WorkspaceGuard, doors, doors_of, durability, no_doors, toolboxes, wired};
use crate::unrecorded::Unrecorded;
use octo_flow::Flows;
use octo_grants::config_dirs::ConfigDirs;
use octo_grants::{Capabilities, JqRunner, Workspace};
use octo_hub::declared::DeclaredToolsConfig;
use octo_hub::{AuditLog, Hub, HubConfig, Profile, ResultStore, RuleSettings};
use octo_store::{Options, Store};
use octo_toolkit::{Source, SourceState};
use octo_web::{NoProbe, Probe};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Longest that the records of the last calls may take to be written.
const PATIENCE: Duration = Duration::from_secs(5);

/// Which servers are started.
#[derive(Debug, PartialEq, Eq)]
pub enum Reach {
    All,
    One(String),
    Nobody,
}

/// A hub and what it stands on.
pub struct Assembly {
    pub hub: Arc<Hub>,
    /// Nothing where nothing is called.
    pub flows: Option<Flows>,
    pub gateway: Gateway,
    /// Where arguments are shown.
    pub contents: Arc<Contents>,
    store: Option<Arc<Store>>,
}

impl Reach {
    /// The server that a tool's name begins with; one call need not start all of them.
    pub fn of(settings: &Settings, tool: &str, profile: &str) -> Self {
        if !profile.is_empty() {
            return Self::All;
        }
        let toolboxes = toolboxes(settings);
        let home = toolboxes.iter().find(|toolbox| toolbox.tools.iter().any(|own| own.name == tool));
        match home.map(|toolbox| toolbox.name) {
            // A workflow may call any tool, and these are about all servers.
            Some("workflow" | "servers") => return Self::All,
            Some(_) => return Self::Nobody,
            None if tool == "result_read" => return Self::Nobody,
            None => {}
        }
        let server = tool.split_once("__").or_else(|| tool.split_once(':')).map(|(server, _)| server);
        match server.filter(|server| settings.servers.contains_key(*server)) {
            Some(server) => Self::One(server.to_owned()),
            None => Self::All,
        }
    }

    fn includes(&self, server: &str) -> bool {
        match self {
            Self::All => true,
            Self::One(name) => name == server,
            Self::Nobody => false,
        }
    }
}

impl Assembly {
    /// Starts servers without waiting for them. Needs a runtime.
    pub fn build(session: &Session, reach: &Reach) -> Result<Self, Failure> {
        let loaded = &session.loaded;
        let settings = &loaded.settings;
        let store = match session.purpose {
            Purpose::Calls => Some(Arc::new(open(loaded)?)),
            Purpose::Looks => None,
        };
        let gateway = Gateway::start(session, |name| reach.includes(name))?;
        let (ledger, spills): (Arc<dyn AuditLog>, Arc<dyn ResultStore>) = match &store {
            Some(store) => (Arc::clone(store) as _, Arc::clone(store) as _),
            None => (Arc::new(Unrecorded), Arc::new(Unrecorded)),
        };
        let jq = JqRunner::new(Arc::new(jq::Workers::new()?));
        let doors = match session.purpose {
            Purpose::Calls => opened(loaded, &spills)?.with(jq.clone()),
            Purpose::Looks => no_doors(),
        };
        let doors = doors.with(gateway.servers().clone());
        let roots = client_roots(session, &doors);
        let natives = natives(loaded, &doors).map(|source| match &roots {
            Some(roots) => roots.around(source),
            None => source,
        });
        let sources = natives.chain(gateway.sources());
        let hub = Hub::new(HubConfig {
            sources: sources.collect(),
            profiles: profiles(settings)?,
            policy: settings.policy.clone(),
            limits: settings.limits.clone(),
            cache: settings.cache.clone(),
            shape: settings.results.clone(),
            timeout: Duration::from_secs(settings.calls.timeout_seconds),
            ledger,
            spills,
            jq,
            tracer: session.export.as_ref().map(|export| export.hub_tracer()),
        });
        let hub = hub.map_err(|error| bad_pattern(&error))?;
        let flows = doors.open::<Flows>().ok();
        if let Some(flows) = &flows {
            flows.attach(&hub);
        }
        gateway.attach(&hub);
        let contents = Arc::new(Contents::new(Arc::clone(&session.redactor), settings));
        hub.set_excerpts(Arc::clone(&contents) as _);
        Ok(Self { hub, flows, gateway, contents, store })
    }

    /// What `/ready` looks at; nothing where nothing is called.
    pub fn probe(&self) -> Arc<dyn Probe> {
        match &self.store {
            Some(store) => Arc::new(HubProbe::new(Arc::clone(store), self.gateway.servers().clone())),
            None => Arc::new(NoProbe),
        }
    }

    /// Lets workflows finish the steps that they are in, ends the servers and writes what is left to record.
    pub async fn end(self) {
        if let Some(flows) = &self.flows {
            flows.end().await;
        }
        self.gateway.end().await;
        if let Some(store) = &self.store
            && !matches!(tokio::time::timeout(PATIENCE, store.flush()).await, Ok(Ok(())))
        {
            tracing::error!("the last records could not be written");
        }
    }
}

fn open(loaded: &Loaded) -> Result<Store, Failure> {
    let folder = state_dir(loaded.settings.state_dir.as_ref())?;
    Ok(Store::open(&folder, Options { durability: durability(&loaded.settings), ..Options::default() })?)
}

fn opened(loaded: &Loaded, spills: &Arc<dyn ResultStore>) -> Result<Capabilities, Failure> {
    let settings = &loaded.settings;
    let state = state_dir(settings.state_dir.as_ref())?;
    let no_root = loaded.workspace.refusal().map(|why| (why, WORKSPACE_REMEDY.to_owned()));
    let guard = WorkspaceGuard { protected: loaded.protected.clone(), no_root };
    let doors = doors(settings, guard, &state, &this_program()?, Arc::clone(spills))?;
    let workspace = doors.open::<Workspace>()?;
    let writable = workspace.roots().iter().filter(|root| root.writable);
    let writable: Vec<PathBuf> = writable.map(|root| root.path.clone()).collect();
    loaded.trust.clone().remember_roots(&writable).map_err(|error| {
        Failure::new(format!(
            "The list of approved files cannot be written: {error}. Check the state directory."
        ))
    })?;
    Ok(doors)
}

/// One client has this process for itself and may name the folder that it was not started in.
fn client_roots(session: &Session, doors: &Capabilities) -> Option<Arc<ClientRoots>> {
    let is_refused = session.talk == Talk::Stdio && session.loaded.workspace.refusal().is_some();
    let workspace = doors.open::<Workspace>().ok().filter(|_| is_refused)?;
    workspace.roots().is_empty().then(|| ClientRoots::new(&session.loaded, workspace))
}

fn natives(loaded: &Loaded, doors: &Capabilities) -> impl Iterator<Item = Arc<dyn Source>> + use<> {
    let settings = &loaded.settings;
    let (toolboxes, doors) = wired(settings, doors);
    let names = toolboxes.iter().flat_map(|toolbox| toolbox.tools.iter().map(|tool| tool.name.to_owned()));
    let reserved: BTreeSet<String> = names.chain(["result_read".to_owned()]).collect();
    let sources: Vec<_> = toolboxes
        .into_iter()
        .map(|toolbox| {
            let state = state_of(settings, toolbox.name);
            let doors = doors_of(toolbox.name, settings, &doors);
            toolbox.into_source(doors, state)
        })
        .collect();
    let own = own(loaded, &reserved, &doors);
    sources.into_iter().chain(own)
}

/// What the operator writes in YAML, and the prompts that come with the product.
fn own(loaded: &Loaded, reserved: &BTreeSet<String>, doors: &Capabilities) -> [Arc<dyn Source>; 2] {
    let settings = &loaded.settings;
    let approved =
        |folders: &[PathBuf]| ConfigDirs::new(folders.to_vec()).with_approval(loaded.approve.clone());
    let shipped = if settings.prompts.shipped { SHIPPED } else { &[] };
    let declared = DeclaredToolsConfig {
        folders: approved(&settings.tools.folders),
        doors: doors.clone(),
        environment: Arc::new(|name| std::env::var(name).ok()),
        reserved: reserved.clone(),
        state: state_of(settings, "declared"),
    };
    [
        octo_hub::prompt_files::source(shipped, approved(&settings.prompts.folders)),
        octo_hub::declared::source(declared),
    ]
}

fn state_of(settings: &Settings, toolbox: &str) -> SourceState {
    // They appear with the first server.
    if toolbox == "servers" && settings.servers.is_empty() {
        return SourceState::Off("add a server: `octoprox servers add --help`".to_owned());
    }
    // What needs a model follows the toolbox that it belongs to, once there is a model.
    if toolbox == "summary" {
        return match settings.llm.url {
            Some(_) => state_of(settings, "text"),
            None => SourceState::Off("set OCTOPROX_LLM_URL and OCTOPROX_LLM_MODEL".to_owned()),
        };
    }
    if settings.toolboxes.is_on(toolbox) {
        SourceState::Ready
    } else {
        SourceState::Off(format!("set OCTOPROX_ENABLE_{}=true", toolbox.to_uppercase()))
    }
}

pub fn bad_pattern(error: &impl std::fmt::Display) -> Failure {
    Failure::invalid(format!("A pattern in the settings cannot be read: {error}."))
}

/// What the settings decide about calls.
pub fn rules(settings: &Settings) -> RuleSettings {
    RuleSettings {
        policy: settings.policy.clone(),
        limits: settings.limits.clone(),
        cache: settings.cache.clone(),
        timeout: Duration::from_secs(settings.calls.timeout_seconds),
    }
}

/// The profiles of the settings and those that come with the product.
pub fn profiles(settings: &Settings) -> Result<Vec<Profile>, Failure> {
    let made = with_dialects(&settings.profiles).into_iter().map(|(name, profile)| {
        Profile::new(&name, &profile).map_err(|error| Failure::invalid(format!("profiles.{name}: {error}.")))
    });
    made.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Server;

    #[test]
    fn a_call_starts_only_what_it_needs() {
        let mut settings = Settings::default();
        settings.servers.insert("notion".to_owned(), Server::default());
        for (tool, profile, reach) in [
            ("time_now", "", Reach::Nobody),
            ("result_read", "", Reach::Nobody),
            ("notion__search", "", Reach::One("notion".to_owned())),
            ("notion:search", "", Reach::One("notion".to_owned())),
            ("other__search", "", Reach::All),
            ("workflow_run", "", Reach::All),
            ("servers_list", "", Reach::All),
            ("search", "", Reach::All),
            ("time_now", "bare", Reach::All),
        ] {
            assert_eq!(Reach::of(&settings, tool, profile), reach, "{tool}");
        }
    }
}
