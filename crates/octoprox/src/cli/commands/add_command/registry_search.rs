//! Looks a server up in the registries of the settings.

use crate::app_context::block_on_current_thread;
use crate::app_error::AppError;
use crate::settings::Settings;
use crate::terminal::console;
use crate::toolboxes::net_spec;
use octo_catalogue::{CatalogueEntry, RegistryServer, registry_servers};
use octo_grants::Net;
use octo_grants::net::NetRequest;
use octo_model::ToolError;
use serde_json::Value;
use url::Url;

/// A server that a registry describes.
pub struct RegistryMatch {
    /// Name for the settings, or in the registry.
    pub name: String,
    pub entry: CatalogueEntry,
}

/// Searches all registries. The names are the whole ones.
pub fn search_registries(settings: &Settings, words: &str) -> Result<Vec<RegistryMatch>, AppError> {
    if settings.registries.is_empty() {
        return Ok(Vec::new());
    }
    block_on_current_thread(async {
        let net = Net::new(net_spec(settings))?;
        let mut found = Vec::new();
        for registry in &settings.registries {
            let servers = match search(&net, registry, words).await {
                Ok(servers) => servers.into_iter(),
                // The others still count.
                Err(error) => {
                    console::print_err(&format!("octoprox: {error}"));
                    continue;
                }
            };
            found.extend(servers.map(|server| RegistryMatch {
                name: server.name.clone(),
                entry: server.into_entry(registry),
            }));
        }
        Ok(found)
    })
}

/// Finds a server by its whole name, or by the part after the slash, in the first registry that has it.
pub fn find_in_registries(settings: &Settings, name: &str) -> Result<Option<RegistryMatch>, AppError> {
    if settings.registries.is_empty() {
        return Ok(None);
    }
    block_on_current_thread(async {
        let net = Net::new(net_spec(settings))?;
        for registry in &settings.registries {
            let found = search(&net, registry, name).await?;
            let bare = |server: &RegistryServer| server.name.rsplit('/').next() == Some(name);
            let mut found: Vec<RegistryServer> =
                found.into_iter().filter(|server| server.name == name || bare(server)).collect();
            found.dedup_by(|one, other| one.name == other.name);
            match found.len() {
                0 => {}
                1 => {
                    return Ok(found.pop().map(|server| RegistryMatch {
                        name: server.name.rsplit('/').next().unwrap_or(name).to_owned(),
                        entry: server.into_entry(registry),
                    }));
                }
                _ => {
                    let names: Vec<&str> = found.iter().map(|server| server.name.as_str()).collect();
                    return Err(AppError::invalid(format!(
                        "{registry} has several servers `{name}`. Use the whole name: {}.",
                        names.join(", ")
                    )));
                }
            }
        }
        Ok(None)
    })
}

async fn search(net: &Net, registry: &str, name: &str) -> Result<Vec<RegistryServer>, AppError> {
    let named =
        |error| AppError::new(format!("The registry {registry} (setting `registries`) failed: {error}"));
    request(net, registry, name).await.map_err(named)
}

async fn request(net: &Net, registry: &str, name: &str) -> Result<Vec<RegistryServer>, AppError> {
    let invalid = || AppError::invalid(format!("registries: `{registry}` is not a URL."));
    let mut url = Url::parse(registry).map_err(|_| invalid())?;
    url.path_segments_mut().map_err(|()| invalid())?.pop_if_empty().extend(["v0.1", "servers"]);
    url.query_pairs_mut()
        .append_pair("search", name)
        .append_pair("version", "latest")
        .append_pair("limit", "100");
    let net = net.for_configured_host(url.as_str())?;
    let reply = net.send(NetRequest::get(url)).await?;
    if !reply.status.is_success() {
        let error =
            ToolError::unavailable(format!("{registry} returned HTTP status {}.", reply.status.as_u16()));
        return Err(error.hint("Check `registries` in the settings.").into());
    }
    let reply: Value = serde_json::from_slice(&reply.body).map_err(|error| {
        let message = format!("{registry} does not speak the registry API: {error}.");
        ToolError::unavailable(message).hint("Check `registries` in the settings.")
    })?;
    Ok(registry_servers(&reply))
}
