//! The registry API (version 0.1): entries as registries describe servers, in both directions.

use crate::catalogue::Catalogue;
use crate::catalogue_entry::{
    CatalogueEntry, LoginKind, Package, PackageRegistry, Publisher, PublisherEvidence, Remote, TokenHeader,
    Variable,
};
use crate::own_variable::own_variable;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Namespace of the entries of this catalogue.
const NAMESPACE: &str = "octoprox";
const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";
const STATUS_KEY: &str = "io.modelcontextprotocol.registry/official";
const DEFAULT_LIMIT: usize = 30;
const MAX_LIMIT: usize = 100;

/// Query of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct RegistryQuery {
    pub cursor: Option<String>,
    pub limit: Option<usize>,
    /// Part of a name.
    pub search: Option<String>,
    /// `latest` or an exact version.
    pub version: Option<String>,
    /// RFC 3339 time.
    pub updated_since: Option<String>,
}

impl Catalogue {
    /// A page of entries.
    pub fn registry_list(&self, query: &RegistryQuery) -> Value {
        let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
        let words = query.search.as_deref().unwrap_or_default().to_lowercase();
        let since = query.updated_since.as_deref().and_then(|time| time.get(..10)).unwrap_or_default();
        let wanted = query.version.as_deref().filter(|version| *version != "latest");
        let matches = |name: &str, entry: &CatalogueEntry| {
            (registry_name(name).contains(&words) || entry.title.to_lowercase().contains(&words))
                && entry.checked.as_str() >= since
                && wanted.is_none_or(|version| entry_version(entry) == version)
        };
        let after = query.cursor.as_deref().unwrap_or_default();
        let mut found = self.iter().filter(|(name, entry)| *name > after && matches(name, entry));
        let page: Vec<(&str, &CatalogueEntry)> = found.by_ref().take(limit).collect();
        let metadata = match (page.last(), found.next()) {
            (Some((last, _)), Some(_)) => json!({"count": page.len(), "nextCursor": last}),
            _ => json!({"count": page.len()}),
        };
        let servers: Vec<Value> = page.into_iter().map(|(name, entry)| registry_entry(name, entry)).collect();
        json!({"servers": servers, "metadata": metadata})
    }

    /// All versions of one server: the one of this catalogue.
    pub fn registry_versions(&self, name: &str) -> Option<Value> {
        let (name, entry) = self.find_registry_name(name)?;
        Some(json!({"servers": [registry_entry(name, entry)], "metadata": {"count": 1}}))
    }

    /// One version of one server.
    pub fn registry_version(&self, name: &str, version: &str) -> Option<Value> {
        let (name, entry) = self.find_registry_name(name)?;
        (version == "latest" || entry_version(entry) == version).then(|| registry_entry(name, entry))
    }

    fn find_registry_name(&self, name: &str) -> Option<(&str, &CatalogueEntry)> {
        self.find(name.strip_prefix(NAMESPACE)?.strip_prefix('/')?)
    }
}

fn registry_name(name: &str) -> String {
    format!("{NAMESPACE}/{name}")
}

/// A remote server has no version, so the day of its check serves as one.
fn entry_version(entry: &CatalogueEntry) -> String {
    entry.package.as_ref().map_or_else(|| entry.checked.replace('-', "."), |package| package.version.clone())
}

fn registry_entry(name: &str, entry: &CatalogueEntry) -> Value {
    let time = format!("{}T00:00:00Z", entry.checked);
    let mut server = Map::from_iter([
        ("$schema".to_owned(), Value::from(SCHEMA)),
        ("name".to_owned(), registry_name(name).into()),
        ("title".to_owned(), entry.title.as_str().into()),
        ("description".to_owned(), entry.description.as_str().into()),
        ("version".to_owned(), entry_version(entry).into()),
        ("websiteUrl".to_owned(), entry.publisher.url.as_str().into()),
    ]);
    if let Some(remote) = &entry.remote {
        server.insert("remotes".to_owned(), json!([registry_remote(remote)]));
    }
    if let Some(package) = &entry.package {
        server.insert("packages".to_owned(), json!([registry_package(package, &entry.variables)]));
    }
    let status = json!({"status": "active", "publishedAt": time, "updatedAt": time, "isLatest": true});
    json!({"server": server, "_meta": {STATUS_KEY: status}})
}

fn registry_remote(remote: &Remote) -> Value {
    let Some(token) = &remote.token else { return json!({"type": "streamable-http", "url": remote.url}) };
    let variable = &token.variable;
    let header = json!({
        "name": token.header,
        "value": token.value.replace(&format!("${{{variable}}}"), &format!("{{{variable}}}")),
        "isRequired": remote.login == LoginKind::Token,
        "isSecret": true,
        "variables": {(variable.as_str()): {"isSecret": true, "isRequired": true}},
    });
    json!({"type": "streamable-http", "url": remote.url, "headers": [header]})
}

fn registry_package(package: &Package, variables: &[Variable]) -> Value {
    let variables: Vec<Value> = variables
        .iter()
        .map(|variable| {
            json!({
                "name": variable.name,
                "description": variable.description,
                "isRequired": variable.required,
                "isSecret": variable.secret,
            })
        })
        .collect();
    json!({
        "registryType": package.registry.as_str(),
        "identifier": package.name,
        "version": package.version,
        "transport": {"type": "stdio"},
        "environmentVariables": variables,
    })
}

/// A server as a registry describes it. Other members are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RegistryServer {
    pub name: String,
    pub version: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    website_url: Option<String>,
    #[serde(default)]
    repository: Option<RegistryRepository>,
    #[serde(default)]
    packages: Vec<RegistryPackage>,
    #[serde(default)]
    remotes: Vec<RegistryRemote>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct RegistryRepository {
    #[serde(default)]
    url: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RegistryPackage {
    registry_type: String,
    identifier: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    environment_variables: Vec<RegistryInput>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct RegistryRemote {
    #[serde(rename = "type")]
    kind: String,
    url: String,
    #[serde(default)]
    headers: Vec<RegistryInput>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RegistryInput {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    value: Option<String>,
    #[serde(default)]
    is_required: bool,
    #[serde(default)]
    is_secret: bool,
}

/// Servers in the reply of a registry. Entries that cannot be read are left out.
pub fn registry_servers(reply: &Value) -> Vec<RegistryServer> {
    let servers = reply.get("servers").and_then(Value::as_array).into_iter().flatten();
    servers.filter_map(|one| serde_json::from_value(one.get("server")?.clone()).ok()).collect()
}

impl RegistryServer {
    /// What the registry says about the server, with the day on which it said so. Hosts, integrity and tools are unknown.
    pub fn into_entry(self, registry: &str) -> CatalogueEntry {
        let namespace = self.name.split('/').next().unwrap_or_default().to_owned();
        let packages = self.packages.iter().find_map(|package| {
            let registry = match package.registry_type.as_str() {
                "npm" => PackageRegistry::Npm,
                "pypi" => PackageRegistry::Pypi,
                "oci" => PackageRegistry::Oci,
                _ => return None,
            };
            Some((registry, package))
        });
        let variables = packages.iter().flat_map(|(_, package)| &package.environment_variables);
        let variables = variables.map(|input| Variable {
            name: input.name.clone(),
            description: input.description.clone(),
            secret: input.is_secret,
            required: input.is_required,
        });
        let is_usable =
            |remote: &&RegistryRemote| remote.kind == "streamable-http" && !remote.url.contains('$');
        let remote = self.remotes.iter().find(is_usable).map(|remote| to_remote(remote, &self.name));
        let repository = self.repository.map(|repository| repository.url).filter(|url| !url.is_empty());
        CatalogueEntry {
            title: self.title.unwrap_or_else(|| self.name.clone()),
            description: self.description,
            publisher: Publisher {
                name: namespace,
                url: repository.or(self.website_url).unwrap_or_else(|| registry.to_owned()),
                verified_by: PublisherEvidence::Namespace,
            },
            categories: Vec::new(),
            aliases: Vec::new(),
            remote,
            variables: variables.collect(),
            package: packages.map(|(registry, package)| Package {
                registry,
                name: package.identifier.clone(),
                version: if package.version.is_empty() {
                    self.version.clone()
                } else {
                    package.version.clone()
                },
                integrity: String::new(),
                command: None,
                args: Vec::new(),
                env: std::collections::BTreeMap::new(),
            }),
            hosts: Vec::new(),
            access: Vec::new(),
            tools: std::collections::BTreeMap::new(),
            tools_from: None,
            checked: String::new(),
        }
    }
}

/// A required secret header replaces the login. The name of its variable is ours, and no other variable is filled in: a
/// registry must not choose which secrets are sent.
fn to_remote(remote: &RegistryRemote, server: &str) -> Remote {
    let url = remote.url.clone();
    let Some(header) = remote.headers.iter().find(|header| header.is_secret && header.is_required) else {
        return Remote { url, login: LoginKind::Oauth, token: None };
    };
    let variable = own_variable(server.rsplit('/').next().unwrap_or(server), "TOKEN");
    let template = header.value.as_deref().unwrap_or_default();
    let prefix = template.split('{').next().unwrap_or_default();
    let prefix = if prefix.contains('$') { "" } else { prefix };
    let value = format!("{prefix}${{{variable}}}");
    Remote {
        url,
        login: LoginKind::Token,
        token: Some(TokenHeader { variable, header: header.name.clone(), value }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_contain_every_entry_once() {
        let catalogue = Catalogue::shipped().unwrap();
        let (mut names, mut query) = (Vec::new(), RegistryQuery::default());
        loop {
            let page = catalogue.registry_list(&query);
            assert_eq!(page["metadata"]["count"], page["servers"].as_array().unwrap().len());
            names.extend(registry_servers(&page).into_iter().map(|server| server.name));
            match page["metadata"]["nextCursor"].as_str() {
                Some(cursor) => query.cursor = Some(cursor.to_owned()),
                None => break,
            }
        }
        let all: Vec<String> = catalogue.iter().map(|(name, _)| registry_name(name)).collect();
        assert_eq!(names, all);
    }

    #[test]
    fn queries() {
        let catalogue = Catalogue::shipped().unwrap();
        let count =
            |query: RegistryQuery| catalogue.registry_list(&query)["metadata"]["count"].as_u64().unwrap();
        let search = |text: &str| RegistryQuery { search: Some(text.to_owned()), ..RegistryQuery::default() };
        assert!(count(search("GitHub")) >= 1);
        assert_eq!(count(search("no such server")), 0);
        assert_eq!(count(RegistryQuery { limit: Some(1_000), ..RegistryQuery::default() }), 100);
        assert_eq!(
            count(RegistryQuery {
                updated_since: Some("2999-01-01T00:00:00Z".into()),
                ..RegistryQuery::default()
            }),
            0
        );
        assert!(catalogue.registry_version("octoprox/time", "latest").is_some());
        assert!(catalogue.registry_version("octoprox/time", "0.0.0").is_none());
        assert!(
            catalogue.registry_versions("time").is_none()
                && catalogue.registry_versions("octoprox/nope").is_none()
        );
    }

    #[test]
    fn a_registry_does_not_choose_which_secrets_are_sent() {
        let remote = |name: &str, url: &str, value: &str| {
            let header = json!({"name": "X-Key", "value": value, "isSecret": true, "isRequired": true});
            let remotes = json!([{"type": "streamable-http", "url": url, "headers": [header]}]);
            let server = json!({"name": name, "version": "1", "remotes": remotes});
            let [server] = registry_servers(&json!({"servers": [{"server": server}]})).try_into().unwrap();
            server.into_entry("https://registry.example").remote
        };
        for (value, wanted) in [
            ("Bearer {OTHER_SECRET}", "Bearer ${MCP_MY_TIDES__TOKEN}"),
            ("${OTHER_SECRET}", "${MCP_MY_TIDES__TOKEN}"),
            ("${secret:OTHER_SECRET}", "${MCP_MY_TIDES__TOKEN}"),
            ("Key ${OTHER_SECRET} {x}", "${MCP_MY_TIDES__TOKEN}"),
            ("", "${MCP_MY_TIDES__TOKEN}"),
        ] {
            let token = remote("com.example/my-tides", "https://x.test/mcp", value).unwrap().token.unwrap();
            assert_eq!(
                (token.variable.as_str(), token.value.as_str()),
                ("MCP_MY_TIDES__TOKEN", wanted),
                "{value}"
            );
        }
        // No name of a server is the name of a secret that other programs use.
        for name in ["github", "npm", "hf", "vault", "aws-session", "cloudflare-api", "1", "GITHUB", "mcp"] {
            let token = remote(&format!("io.github.mallory/{name}"), "https://x.test/mcp", "")
                .unwrap()
                .token
                .unwrap();
            assert!(
                token.variable.starts_with("MCP_") && token.variable.contains("__TOKEN"),
                "{}",
                token.variable
            );
        }
        assert_eq!(remote("com.example/my-tides", "https://x.test/${OTHER_SECRET}", "{x}"), None);
    }

    /// What one hub serves, another can add.
    #[test]
    fn entries_survive_the_way_through_a_registry() {
        let catalogue = Catalogue::shipped().unwrap();
        for (name, entry) in catalogue.iter() {
            let reply = catalogue.registry_versions(&registry_name(name)).unwrap();
            let [server] = registry_servers(&reply).try_into().unwrap();
            let read = server.into_entry("https://registry.example");
            assert_eq!(
                read.remote.as_ref().map(|remote| &remote.url),
                entry.remote.as_ref().map(|remote| &remote.url)
            );
            let login =
                |entry: &CatalogueEntry| entry.remote.as_ref().map(|remote| remote.login == LoginKind::Token);
            assert_eq!(login(&read), login(entry), "{name}");
            let package =
                |entry: &CatalogueEntry| entry.package.clone().map(|package| (package.name, package.version));
            assert_eq!(package(&read), package(entry), "{name}");
            assert_eq!(read.variables, entry.variables, "{name}");
        }
    }
}
