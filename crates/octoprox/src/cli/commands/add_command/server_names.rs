//! Names of servers, and what a text on the command line looks like.

use crate::app_error::AppError;
use crate::settings::load::settings_format;
use octo_catalogue::{Catalogue, Package, PackageReference, ServerReference};
use octo_model::nearest;
use std::net::IpAddr;
use std::path::Path;

pub fn unknown_name(catalogue: &Catalogue, name: &str) -> AppError {
    let hint = match nearest(name, catalogue.names()) {
        Some(close) => format!("Did you mean `{close}`?"),
        None if name.contains('/') => {
            "It is no file here, and no registry of the settings has it.".to_owned()
        }
        None => format!(
            "Search with `octoprox add --search WORDS`, or name the package: npm:{name}, pypi:{name}."
        ),
    };
    AppError::new(format!("The catalogue has no server `{name}`. {hint}"))
}

/// The words that name the server: `@acme/weather-mcp-server` is `weather`.
pub fn server_name(package: &str) -> String {
    let bare = package.rsplit('/').next().unwrap_or(package).to_lowercase();
    let words = bare.split(|sign: char| !sign.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !["", "mcp", "server"].contains(word)).collect();
    words.join("-")
}

/// The package of an entry. A registry can write anything, so it is parsed like what a person writes.
pub fn reference_of(package: &Package) -> Result<PackageReference, AppError> {
    let Package { registry, name, version, .. } = package;
    match ServerReference::parse(&format!("{}:{name}@{version}", registry.as_str())) {
        Ok(ServerReference::Package(reference)) if reference.name == *name => Ok(reference),
        _ => Err(AppError::invalid(format!("`{name}` in version `{version}` is not a package."))),
    }
}

/// `mcp.notion.com` is `notion`, and so is `mcp.notion.co.uk`. An address has no name.
pub fn host_label(host: &str) -> &str {
    if host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() {
        return "";
    }
    let labels: Vec<&str> = host.split('.').collect();
    match labels.as_slice() {
        [.., name, second, country] if second.len() <= 3 && country.len() == 2 => name,
        [.., name, _] => name,
        _ => host,
    }
}

/// `com.example/server`
pub fn is_registry_name(text: &str) -> bool {
    let plain = |sign: char| sign.is_ascii_alphanumeric() || "._-".contains(sign);
    let is_part =
        |part: &str| part.starts_with(|sign: char| sign.is_ascii_alphanumeric()) && part.chars().all(plain);
    text.split_once('/').is_some_and(|(namespace, name)| is_part(namespace) && is_part(name))
}

pub fn is_document(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ["json", "yaml", "yml"].iter().any(|known| ending == *known))
}

/// Refuses a file that is no OpenAPI document. The whole document is checked when it is loaded.
pub fn check_document(path: &Path) -> Result<(), AppError> {
    let refused = |why: &str| AppError::invalid(format!("{}: {why}.", path.display()));
    let text = settings_format::read_foreign(path).map_err(|error| refused(&error.to_string()))?;
    let tree = settings_format::parse_as(path, &text).map_err(|_| refused("not valid JSON or YAML"))?;
    match ["openapi", "swagger"].iter().any(|key| tree.get(key).is_some()) {
        true => Ok(()),
        false => Err(refused("not an OpenAPI document: it has no `openapi`")),
    }
}

pub fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.starts_with("127.") || host == "[::1]"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::valid_name;

    #[test]
    fn names_for_the_settings() {
        for (package, name) in [
            ("@acme/tides-mcp-server", "tides"),
            ("@acme/weather-mcp-server", "weather-mcp"),
            ("mcp-server-time", "time-mcp"),
            ("mcp-server", "server"),
            ("@github/mcp", "server"),
            ("github-mcp-server", "github-mcp"),
        ] {
            assert_eq!(valid_name(&server_name(package), std::iter::empty()), name);
        }
        assert_eq!(host_label("mcp.notion.com"), "notion");
        assert_eq!(host_label("mcp.notion.co.uk"), "notion");
        assert_eq!(host_label("localhost"), "localhost");
        assert_eq!((host_label("127.0.0.1"), host_label("[::1]")), ("", ""));
    }
}
