//! What the operator can do about a problem. Only the binary knows its commands and environment variables, so the
//! libraries name the remedy and the binary writes the sentence.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What the operator can do about a problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Remedy {
    /// Log in at a server.
    Login {
        server: String,
    },
    /// Enter the API key of a server.
    EnterApiKey {
        server: String,
    },
    /// Review the definitions that a server has changed.
    ReviewDefinitions {
        server: String,
    },
    /// Install the package of a server.
    InstallPackage {
        server: String,
    },
    /// Check why a server does not work.
    CheckServers,
    AddServer,
    /// Add a server of the catalogue.
    AddServerByName {
        server: String,
    },
    /// Approve a changed settings file.
    ApproveSettings,
    /// Change the settings with these paths, such as `github.token`.
    Settings(Vec<Cow<'static, str>>),
    /// Add a host to `net.allow`.
    AllowHost {
        host: String,
    },
}

impl Remedy {
    pub fn settings(paths: &[&'static str]) -> Self {
        Self::Settings(paths.iter().copied().map(Cow::Borrowed).collect())
    }
}

/// Writes the sentence about a remedy.
pub type RemedyText = fn(&Remedy) -> String;
