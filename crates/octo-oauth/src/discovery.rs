//! Discovery of the authorization server: protected resource metadata (RFC 9728), then authorization server metadata
//! (RFC 8414 or OpenID Connect).

use crate::auth_http::{AuthHttp, display_url};
use crate::challenge::Challenge;
use crate::issuer::Issuer;
use octo_model::ToolError;
use serde::Deserialize;
use url::Url;

/// Maximum scopes taken from the metadata.
const MAX_SCOPES: usize = 64;

#[derive(Debug)]
pub(crate) struct Discovery {
    pub(crate) issuer: Issuer,
    /// Audience of the tokens.
    pub(crate) resource: String,
    /// All scopes that the server supports.
    pub(crate) scopes: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct ResourceMetadata {
    resource: Option<String>,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

pub(crate) async fn discover(
    web: &AuthHttp<'_>,
    server: &Url,
    challenge: &Challenge,
    wanted: Option<&str>,
) -> Result<Discovery, ToolError> {
    let Some(protected) = fetch_resource_metadata(web, server, challenge).await? else {
        // Without protected resource metadata the server is its own authorization server.
        let issuer = match wanted {
            Some(wanted) => fetch_issuer(web, wanted).await?,
            None => fetch_own_issuer(web, server).await?,
        };
        return Ok(Discovery { issuer, resource: canonical_resource(server), scopes: Vec::new() });
    };
    let resource = match protected.resource {
        Some(resource) if covers(&resource, server) => resource,
        Some(resource) => return Err(resource_mismatch(server, &resource)),
        None => canonical_resource(server),
    };
    let issuer = choose_issuer(&protected.authorization_servers, wanted)?;
    let scopes = protected.scopes_supported.into_iter().take(MAX_SCOPES).collect();
    Ok(Discovery { issuer: fetch_issuer(web, issuer).await?, resource, scopes })
}

async fn fetch_resource_metadata(
    web: &AuthHttp<'_>,
    server: &Url,
    challenge: &Challenge,
) -> Result<Option<ResourceMetadata>, ToolError> {
    const NAME: &str = "oauth-protected-resource";
    if let Some(address) = &challenge.metadata_url {
        let found = web.get_json(&web.checked_url(address)?).await?;
        return found.map(Some).ok_or_else(|| {
            ToolError::unavailable(format!("No metadata of the server found at {}.", display_url(address)))
                .hint("The server's operator must fix it.")
        });
    }
    for address in [well_known_with_path(server, NAME), well_known_at_root(server, NAME)] {
        if let Some(found) = web.get_json(&address).await? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The configured issuer, or the first one that the server lists.
fn choose_issuer<'a>(listed: &'a [String], wanted: Option<&'a str>) -> Result<&'a str, ToolError> {
    let none = || {
        ToolError::unavailable("The server names no authorization server.")
            .hint("Set the authorization server as `issuer` in the settings, if it is known.")
    };
    match wanted {
        Some(wanted) if listed.iter().any(|one| one == wanted) => Ok(wanted),
        Some(_) => Err(ToolError::denied("The server names other authorization servers than the settings.")
            .hint("One of them has changed: compare `issuer` with what the server publishes.")),
        None => listed.first().map(String::as_str).ok_or_else(none),
    }
}

/// Fetches the metadata of an issuer at the well-known URLs; `issuer` must match exactly.
async fn fetch_issuer(web: &AuthHttp<'_>, issuer: &str) -> Result<Issuer, ToolError> {
    let url = web.checked_url(issuer)?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err(ToolError::denied(format!("{} is not a valid issuer URL.", display_url(issuer))));
    }
    let found = fetch_metadata(web, &url).await?.ok_or_else(|| no_metadata(issuer))?;
    if found.issuer != issuer {
        return Err(ToolError::denied(format!(
            "The metadata of {} claims to be that of {}.",
            display_url(issuer),
            display_url(&found.issuer)
        ))
        .hint("Nothing was sent there. The server's operator must find out who responds in its place."));
    }
    found.validate(web)
}

/// Treats the server as its own issuer.
async fn fetch_own_issuer(web: &AuthHttp<'_>, server: &Url) -> Result<Issuer, ToolError> {
    let origin = server.origin().ascii_serialization();
    let found = fetch_metadata(web, &web.checked_url(&origin)?).await?.ok_or_else(|| no_metadata(&origin))?;
    if found.issuer.strip_suffix('/').unwrap_or(&found.issuer) != origin {
        return Err(ToolError::denied(format!(
            "The metadata at {} is that of {}.",
            display_url(&origin),
            display_url(&found.issuer)
        )));
    }
    found.validate(web)
}

async fn fetch_metadata(web: &AuthHttp<'_>, issuer: &Url) -> Result<Option<Issuer>, ToolError> {
    const OAUTH: &str = "oauth-authorization-server";
    const OPENID: &str = "openid-configuration";
    let mut addresses = vec![well_known_with_path(issuer, OAUTH), well_known_with_path(issuer, OPENID)];
    if !trimmed_path(issuer).is_empty() {
        addresses.push(with_path(issuer, format!("{}/.well-known/{OPENID}", trimmed_path(issuer))));
    }
    for address in addresses {
        if let Some(found) = web.get_json(&address).await? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn trimmed_path(url: &Url) -> &str {
    url.path().trim_end_matches('/')
}

fn with_path(url: &Url, path: String) -> Url {
    let mut url = url.clone();
    url.set_path(&path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

fn well_known_with_path(url: &Url, name: &str) -> Url {
    with_path(url, format!("/.well-known/{name}{}", trimmed_path(url)))
}

fn well_known_at_root(url: &Url, name: &str) -> Url {
    with_path(url, format!("/.well-known/{name}"))
}

/// URL of the server as a token's audience, without query and fragment.
pub(crate) fn canonical_resource(server: &Url) -> String {
    let bare = with_path(server, server.path().to_owned());
    if bare.path() == "/" { bare.as_str().trim_end_matches('/').to_owned() } else { bare.into() }
}

/// Whether a resource is this server, or a path prefix of it on the same origin.
fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let (whole, part) = (trimmed_path(&resource), trimmed_path(server));
    resource.origin() == server.origin()
        && resource.fragment().is_none()
        && part.strip_prefix(whole).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn resource_mismatch(server: &Url, resource: &str) -> ToolError {
    ToolError::denied(format!(
        "The metadata of {} is that of another server, {}.",
        display_url(server.as_str()),
        display_url(resource)
    ))
    .hint("No login was started: its token would be for that other server.")
}

fn no_metadata(issuer: &str) -> ToolError {
    ToolError::unavailable(format!(
        "{} publishes no OAuth metadata (RFC 8414, RFC 9728).",
        display_url(issuer)
    ))
    .hint("Check the server's URL; if it needs an API key, set that in its `auth`.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    #[test]
    fn a_resource_is_this_server_or_what_it_lies_in() {
        for (resource, server, is) in [
            ("https://x.example/mcp", "https://x.example/mcp", true),
            ("https://x.example/mcp/", "https://x.example/mcp", true),
            ("https://x.example", "https://x.example/mcp", true),
            ("https://x.example/", "https://x.example/a/b", true),
            ("https://X.example:443/a", "https://x.example/a/b?q", true),
            ("https://x.example/mc", "https://x.example/mcp", false),
            ("https://x.example/mcp", "https://x.example/", false),
            ("https://evil.example/mcp", "https://x.example/mcp", false),
            ("http://x.example/mcp", "https://x.example/mcp", false),
            ("https://x.example:8443/mcp", "https://x.example/mcp", false),
            ("https://x.example/mcp#a", "https://x.example/mcp", false),
            ("mcp", "https://x.example/mcp", false),
        ] {
            assert_eq!(covers(resource, &url(server)), is, "{resource} {server}");
        }
    }

    #[test]
    fn addresses_of_metadata_follow_from_the_name() {
        let with = url("https://x.example/a/b?q#f");
        assert_eq!(well_known_with_path(&with, "n").as_str(), "https://x.example/.well-known/n/a/b");
        assert_eq!(well_known_at_root(&with, "n").as_str(), "https://x.example/.well-known/n");
        assert_eq!(
            well_known_with_path(&url("https://x.example/"), "n").as_str(),
            "https://x.example/.well-known/n"
        );
        assert_eq!(canonical_resource(&url("https://X.example/?key=1")), "https://x.example");
        assert_eq!(canonical_resource(&with), "https://x.example/a/b");
    }

    #[test]
    fn the_operators_issuer_must_be_one_that_the_server_names() {
        let listed = ["https://a.example".to_owned(), "https://b.example".to_owned()];
        assert_eq!(choose_issuer(&listed, None).unwrap(), "https://a.example");
        assert_eq!(choose_issuer(&listed, Some("https://b.example")).unwrap(), "https://b.example");
        assert!(choose_issuer(&listed, Some("https://b.example/")).is_err());
        assert!(choose_issuer(&[], None).is_err());
    }
}
