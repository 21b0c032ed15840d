//! `servers_add`.

use octo_catalogue::{Catalogue, CatalogueEntry, LoginKind, Remote};
use octo_model::{EffectClass, Remedy, abbreviate, nearest};
use octo_toolkit::{CallContext, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Describes a server of the catalogue and how a person adds it. Installs and changes nothing: a person must review the
/// server and follow `instruction`. Its tools are listed after that. Prefer servers_search to find a server.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Name from servers_search.
    server: String,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Always `approval_required`.
    status: &'static str,
    /// Display name.
    title: String,
    /// What it offers.
    description: String,
    /// Who publishes it.
    publisher: String,
    /// Its URL, or the package that runs on the machine of the hub.
    runs: String,
    /// What it needs: a login, or environment variables.
    needs: Vec<String>,
    /// Hosts that it reaches.
    hosts: Vec<String>,
    /// Tools that change something.
    writes: Vec<String>,
    /// What a person must do.
    instruction: String,
}

/// Characters of a name in an error.
const MAX_NAME_CHARS: usize = 60;

pub struct Add;

impl Tool for Add {
    const NAME: &'static str = "servers_add";
    const TITLE: &'static str = "Ask a person to add a server";
    const KEYWORDS: &'static str = "install integration plugin connector extension";
    const REQUESTS: &'static [&'static str] = &[
        "how do i get the sentry integration installed",
        "what would be needed to set up this connector from the catalogue",
        "tell me the steps for a person to approve a new integration",
        "which keys and hosts does that catalogue entry require",
        "i found a connector, now explain how to enable it",
        "who publishes this extension and what can it change",
    ];
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = ();

    fn examples() -> Vec<Example> {
        vec![Example::new("A server that servers_search found", json!({"server": "sentry"}))]
    }

    async fn run(&self, input: Input, (): (), cx: &CallContext) -> Result<Output, ToolError> {
        let catalogue = Catalogue::shipped().map_err(ToolError::internal)?;
        let (name, entry) = catalogue
            .find(&input.server.trim().to_lowercase())
            .ok_or_else(|| unknown_server(catalogue, &input.server))?;
        let remedy = Remedy::AddServerByName { server: name.to_owned() };
        Ok(describe(entry, cx.append_remedy("A person must approve it.", &remedy)))
    }
}

fn describe(entry: &CatalogueEntry, instruction: String) -> Output {
    let runs = match (&entry.remote, &entry.package) {
        (Some(remote), _) => remote.url.clone(),
        (None, Some(package)) => {
            format!("{}:{}@{}", package.registry.as_str(), package.name, package.version)
        }
        (None, None) => String::new(),
    };
    let needs = match &entry.remote {
        Some(Remote { login: LoginKind::Oauth, .. }) => vec!["a login in the browser".to_owned()],
        Some(Remote { token, .. }) => token.iter().map(|token| token.variable.clone()).collect(),
        None => {
            let required = entry.variables.iter().filter(|variable| variable.required);
            required.map(|variable| variable.name.clone()).collect()
        }
    };
    let writes = entry.tools.iter().filter(|(_, effect)| **effect != EffectClass::Reads);
    Output {
        status: "approval_required",
        title: entry.title.clone(),
        description: entry.description.clone(),
        publisher: entry.publisher.name.clone(),
        runs,
        needs,
        hosts: entry.hosts.clone(),
        writes: writes.map(|(tool, _)| tool.clone()).collect(),
        instruction,
    }
}

fn unknown_server(catalogue: &Catalogue, name: &str) -> ToolError {
    let hint = match nearest(name, catalogue.names()) {
        Some(close) => format!("Did you mean `{close}`?"),
        None => "Search with servers_search.".to_owned(),
    };
    let name = abbreviate(name, MAX_NAME_CHARS);
    ToolError::not_found(format!("The catalogue has no server `{name}`.")).hint(hint)
}
