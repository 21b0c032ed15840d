//! One server of the catalogue, as its file describes it.

use octo_model::EffectClass;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CatalogueEntry {
    pub title: String,
    pub description: String,
    pub publisher: Publisher,
    pub categories: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Preferred to `package`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<Remote>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<Package>,
    /// Environment variables of the package.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
    /// Hosts that it reaches; `*` stands for any.
    pub hosts: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub access: Vec<LocalAccess>,
    /// Tools with their effects; empty if they are not known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, EffectClass>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_from: Option<ToolsSource>,
    /// Date of the last check.
    pub checked: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Publisher {
    pub name: String,
    pub url: String,
    pub verified_by: PublisherEvidence,
}

/// How the publisher is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PublisherEvidence {
    /// The URL is on a domain of the publisher.
    Endpoint,
    /// The scope of the package belongs to the publisher.
    PackageScope,
    /// The package links to the publisher's repository, as anyone could.
    Repository,
    /// The namespace of the name in a registry, which may have verified it.
    Namespace,
    None,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remote {
    pub url: String,
    pub login: LoginKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenHeader>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoginKind {
    Oauth,
    Token,
    None,
}

/// A token that is sent in a header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenHeader {
    pub variable: String,
    pub header: String,
    /// Contains `${variable}`.
    pub value: String,
}

impl TokenHeader {
    /// The same header with the value of another variable.
    pub fn with_variable(&self, variable: String) -> Self {
        let value = self.value.replace(&format!("${{{}}}", self.variable), &format!("${{{variable}}}"));
        Self { variable, header: self.header.clone(), value }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    pub registry: PackageRegistry,
    pub name: String,
    pub version: String,
    /// `sha512-BASE64` (npm) or `sha256:HEX`.
    pub integrity: String,
    /// Executable, if it differs from the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Fixed environment variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PackageRegistry {
    Npm,
    Pypi,
    Oci,
}

impl PackageRegistry {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pypi => "pypi",
            Self::Oci => "oci",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variable {
    pub name: String,
    pub description: String,
    pub secret: bool,
    pub required: bool,
}

/// A local resource that a package needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LocalAccess {
    Android,
    Browser,
    Commands,
    Database,
    Docker,
    Gcloud,
    Home,
    Kubernetes,
    Workspace,
}

impl LocalAccess {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Android => "android",
            Self::Browser => "browser",
            Self::Commands => "commands",
            Self::Database => "database",
            Self::Docker => "docker",
            Self::Gcloud => "gcloud",
            Self::Home => "home",
            Self::Kubernetes => "kubernetes",
            Self::Workspace => "workspace",
        }
    }
}

/// Where the list of tools comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolsSource {
    /// The package was started in this version and listed.
    Listed,
    Source,
    Documentation,
}
