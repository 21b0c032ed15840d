//! What a person writes after `octoprox add`: a name of the catalogue, or a package, URL or file.

use crate::catalogue_entry::PackageRegistry;
use octo_model::abbreviate;
use std::fmt;
use std::path::PathBuf;
use url::Url;

/// Characters of a text in an error.
const MAX_TEXT_CHARS: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerReference {
    /// A name of the catalogue or of a registry.
    Name(String),
    Package(PackageReference),
    /// An MCP bundle.
    Bundle(PathBuf),
    Url(Url),
    /// A program or an OpenAPI document.
    File(PathBuf),
}

/// `npm:NAME@VERSION`, `pypi:NAME@VERSION` or `oci:NAME@VERSION`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageReference {
    pub registry: PackageRegistry,
    pub name: String,
    pub version: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferenceError {
    reason: String,
}

impl fmt::Display for ReferenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for ReferenceError {}

const REGISTRIES: [PackageRegistry; 3] = [PackageRegistry::Npm, PackageRegistry::Pypi, PackageRegistry::Oci];

impl ServerReference {
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        let text = text.trim();
        if text.starts_with("https://") || text.starts_with("http://") {
            let url = Url::parse(text).map_err(|error| invalid(text, &error.to_string()))?;
            return Ok(Self::Url(url));
        }
        if let Some(path) = text.strip_prefix("mcpb:") {
            return Ok(Self::Bundle(PathBuf::from(path)));
        }
        for registry in REGISTRIES {
            if let Some(package) =
                text.strip_prefix(registry.as_str()).and_then(|rest| rest.strip_prefix(':'))
            {
                return PackageReference::parse(registry, package).map(Self::Package);
            }
        }
        if text.contains('/') || text.contains('.') {
            let path = PathBuf::from(text);
            let is_bundle = path.extension().is_some_and(|ending| ending == "mcpb");
            return Ok(if is_bundle { Self::Bundle(path) } else { Self::File(path) });
        }
        let name = text.to_lowercase();
        if is_name(&name) {
            return Ok(Self::Name(name));
        }
        Err(invalid(text, "a name has lowercase letters, digits and hyphens"))
    }
}

impl PackageReference {
    fn parse(registry: PackageRegistry, text: &str) -> Result<Self, ReferenceError> {
        // A scope begins with the same sign as a version.
        let from = usize::from(text.starts_with('@'));
        let (name, version) = match text.get(from..).and_then(|rest| rest.rsplit_once('@')) {
            Some((name, version)) => (text.get(..from + name.len()).unwrap_or_default(), Some(version)),
            None => (text, None),
        };
        if !is_package_name(registry, name) || version.is_some_and(|version| !is_version(registry, version)) {
            let example = match registry {
                PackageRegistry::Npm => "npm:NAME or npm:NAME@1.2.3",
                PackageRegistry::Pypi => "pypi:NAME or pypi:NAME@1.2.3",
                PackageRegistry::Oci => "oci:NAME@sha256:DIGEST",
            };
            return Err(invalid(text, &format!("write it like {example}")));
        }
        Ok(Self { registry, name: name.to_owned(), version: version.map(str::to_owned) })
    }
}

/// Names that a registry accepts. Nothing that a package manager could take for an option, a path or a URL.
fn is_package_name(registry: PackageRegistry, name: &str) -> bool {
    let is_part = |part: &str, signs: &str| {
        let allowed = |sign: char| sign.is_ascii_alphanumeric() || signs.contains(sign);
        part.starts_with(|sign: char| sign.is_ascii_alphanumeric()) && part.chars().all(allowed)
    };
    match registry {
        PackageRegistry::Npm => match name.strip_prefix('@').map(|scoped| scoped.split_once('/')) {
            Some(Some((scope, name))) => is_part(scope, "-_.~") && is_part(name, "-_.~"),
            Some(None) => false,
            None => is_part(name, "-_.~"),
        },
        PackageRegistry::Pypi => is_part(name, "-_."),
        PackageRegistry::Oci => is_part(name, "-_./:"),
    }
}

/// Exact versions, not ranges, tags or URLs. An image has a digest.
fn is_version(registry: PackageRegistry, version: &str) -> bool {
    let plain = |sign: char| sign.is_ascii_alphanumeric() || "-.+!_".contains(sign);
    match registry {
        PackageRegistry::Npm | PackageRegistry::Pypi => {
            version.starts_with(|sign: char| sign.is_ascii_digit()) && version.chars().all(plain)
        }
        PackageRegistry::Oci => version.starts_with("sha256:") && version.chars().skip(7).all(plain),
    }
}

/// Whether a word can be a name of the catalogue.
pub(crate) fn is_name(word: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !word.starts_with('-') && !word.is_empty() && word.bytes().all(allowed)
}

fn invalid(text: &str, reason: &str) -> ReferenceError {
    let text = abbreviate(text, MAX_TEXT_CHARS);
    ReferenceError { reason: format!("`{text}` is not a server: {reason}.") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(registry: PackageRegistry, name: &str, version: Option<&str>) -> ServerReference {
        let version = version.map(str::to_owned);
        ServerReference::Package(PackageReference { registry, name: name.to_owned(), version })
    }

    #[test]
    fn references() {
        use PackageRegistry::{Npm, Oci, Pypi};
        for (text, wanted) in [
            ("github", ServerReference::Name("github".to_owned())),
            ("GitHub", ServerReference::Name("github".to_owned())),
            ("npm:left-pad", package(Npm, "left-pad", None)),
            ("npm:left-pad@1.2.3", package(Npm, "left-pad", Some("1.2.3"))),
            ("npm:@scope/name", package(Npm, "@scope/name", None)),
            ("npm:@scope/name@1.2.3", package(Npm, "@scope/name", Some("1.2.3"))),
            ("pypi:mcp-server-time@2026.10.19", package(Pypi, "mcp-server-time", Some("2026.10.19"))),
            ("oci:ghcr.io/a/b@sha256:00", package(Oci, "ghcr.io/a/b", Some("sha256:00"))),
            ("mcpb:./a.mcpb", ServerReference::Bundle("./a.mcpb".into())),
            ("a.mcpb", ServerReference::Bundle("a.mcpb".into())),
            ("./server.py", ServerReference::File("./server.py".into())),
            ("openapi.yaml", ServerReference::File("openapi.yaml".into())),
        ] {
            assert_eq!(ServerReference::parse(text), Ok(wanted), "{text}");
        }
        let url = ServerReference::parse("https://mcp.example.com/mcp").unwrap();
        assert!(matches!(url, ServerReference::Url(url) if url.host_str() == Some("mcp.example.com")));
        for text in [
            "",
            "Git Hub",
            "npm:",
            "npm:--registry",
            "npm:a b",
            "npm:a@",
            "npm:a@latest",
            "npm:a@^1.0.0",
            "npm:a@https://x.test/a.tgz",
            "npm:a/b",
            "npm:@a",
            "npm:../a",
            "pypi:https://x.test/a.whl",
            "pypi:$(x)",
            "-x",
            "https://",
        ] {
            assert!(ServerReference::parse(text).is_err(), "{text}");
        }
    }
}
