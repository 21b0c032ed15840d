//! Exact name of a package.

use octo_catalogue::{PackageReference, PackageRegistry, ServerReference};
use std::fmt;

/// A package in one version: `npm:NAME@VERSION`, `pypi:NAME@VERSION` or `mcpb:NAME@VERSION`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageId {
    pub kind: PackageKind,
    pub name: String,
    pub version: String,
}

/// Registries from which packages are installed, and bundles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackageKind {
    Npm,
    Pypi,
    /// An MCP bundle, which is a file.
    Mcpb,
}

impl PackageKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pypi => "pypi",
            Self::Mcpb => "mcpb",
        }
    }

    /// Returns the kind, if packages of this registry are installed.
    pub fn from_registry(registry: PackageRegistry) -> Option<Self> {
        match registry {
            PackageRegistry::Npm => Some(Self::Npm),
            PackageRegistry::Pypi => Some(Self::Pypi),
            PackageRegistry::Oci => None,
        }
    }
}

impl PackageId {
    pub fn parse(text: &str) -> Result<Self, String> {
        let invalid = || format!("`{text}` is not a package with a version.");
        // Names of bundles keep the rules of PyPI.
        let (kind, package) = match text.strip_prefix("mcpb:") {
            Some(bundle) => (Some(PackageKind::Mcpb), format!("pypi:{bundle}")),
            None => (None, text.to_owned()),
        };
        let reference = ServerReference::parse(&package).map_err(|_| invalid())?;
        match reference {
            ServerReference::Package(PackageReference { registry, name, version: Some(version) }) => {
                let kind = kind.or_else(|| PackageKind::from_registry(registry)).ok_or_else(invalid)?;
                Ok(Self { kind, name, version })
            }
            _ => Err(invalid()),
        }
    }
}

impl fmt::Display for PackageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}@{}", self.kind.as_str(), self.name, self.version)
    }
}

/// Whether a text is `sha256:HEX`.
pub fn is_digest(text: &str) -> bool {
    let hex =
        |text: &str| text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    text.strip_prefix("sha256:").is_some_and(hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_have_a_version() {
        for text in ["npm:left-pad@1.0.0", "npm:@a/b@1.0.0-rc.1", "pypi:mcp-server-time@2026.10.19"] {
            assert_eq!(PackageId::parse(text).unwrap().to_string(), text);
        }
        for text in ["npm:left-pad", "left-pad@1", "oci:x@sha256:00", "https://x.test/", "npm:-x@1", ""] {
            assert!(PackageId::parse(text).is_err(), "{text}");
        }
        assert!(is_digest(&format!("sha256:{}", "0a".repeat(32))));
        assert!(!is_digest("sha256:0a") && !is_digest(&"0a".repeat(32)));
    }
}
