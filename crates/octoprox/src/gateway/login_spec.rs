//! Login settings of a server.

use crate::settings::{AuthKind, Server, ServerAuth};
use octo_grants::Net;
use octo_oauth::{Auth, Flow, KeyPlacement, LoginSharing, LoginSpec, OAuth};

/// Returns the login of a server, if it can have one. A URL without `auth` may still require one: then an administrator
/// logs in for all callers.
pub fn login_spec(name: &str, server: &Server, net: &Net) -> Option<LoginSpec> {
    let auth = match &server.auth {
        Some(auth) => auth_from_settings(server, auth)?,
        None if may_need_login(server) => Auth::OAuth(OAuth::default()),
        None => return None,
    };
    let shared = server.auth.as_ref().is_none_or(|auth| auth.shared);
    Some(LoginSpec {
        server: name.to_owned(),
        url: server.url.clone(),
        auth,
        sharing: if shared { LoginSharing::Shared } else { LoginSharing::PerCaller },
        net: net.clone(),
    })
}

/// Returns whether the settings require a login, so that it is requested before the server responds.
pub fn is_required(server: &Server) -> bool {
    server.auth.is_some()
}

fn auth_from_settings(server: &Server, auth: &ServerAuth) -> Option<Auth> {
    match auth.kind {
        AuthKind::None => None,
        AuthKind::Oauth => Some(Auth::OAuth(oauth(auth, Flow::Auto))),
        AuthKind::DeviceCode => Some(Auth::OAuth(oauth(auth, Flow::Device))),
        AuthKind::ApiKey if has_key(server, auth) => None,
        AuthKind::ApiKey => Some(Auth::Key(key_location(server, auth))),
    }
}

fn oauth(auth: &ServerAuth, flow: Flow) -> OAuth {
    OAuth {
        client_id: auth.client_id.clone(),
        client_secret: auth.client_secret.clone(),
        scopes: auth.scopes.clone(),
        issuer: auth.issuer.clone(),
        authorize_params: auth.authorize_params.clone(),
        flow,
    }
}

/// Returns whether the settings contain the key.
pub fn has_key(server: &Server, auth: &ServerAuth) -> bool {
    match (key_location(server, auth), &auth.env) {
        (KeyPlacement::Environment(name), _) => server.env.contains_key(&name),
        (KeyPlacement::Header { name, .. }, _) => has_header(server, &name),
        (KeyPlacement::Query(name), _) => {
            let url = server.url.as_deref().and_then(|url| url::Url::parse(url).ok());
            url.is_some_and(|url| url.query_pairs().any(|(key, _)| key == name))
        }
    }
}

fn key_location(server: &Server, auth: &ServerAuth) -> KeyPlacement {
    match (server.is_program(), &auth.query, &auth.header) {
        (true, ..) => KeyPlacement::Environment(auth.env.clone().unwrap_or_default()),
        (false, Some(query), _) => KeyPlacement::Query(query.clone()),
        (false, None, Some(header)) => KeyPlacement::Header { name: header.clone(), prefix: String::new() },
        (false, None, None) => {
            KeyPlacement::Header { name: "Authorization".to_owned(), prefix: "Bearer ".to_owned() }
        }
    }
}

fn may_need_login(server: &Server) -> bool {
    !server.is_program() && server.document.is_none() && !has_header(server, "Authorization")
}

fn has_header(server: &Server, name: &str) -> bool {
    server.headers.keys().any(|header| header.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_entry_says_about_logging_in() {
        for (entry, wanted) in [
            ("{url: 'https://x.test/mcp'}", "oauth shared"),
            ("{url: 'https://x.test/mcp', headers: {authorization: Bearer k}}", "none"),
            ("{url: 'https://x.test/mcp', auth: {type: none}}", "none"),
            ("{url: 'https://x.test/mcp', auth: {type: oauth2}}", "oauth person"),
            ("{url: 'https://x.test/mcp', auth: {type: oauth2-pkce, shared: true}}", "oauth shared"),
            ("{url: 'https://x.test/mcp', auth: {type: device-code}}", "device person"),
            ("{url: 'https://x.test/mcp', auth: {type: api-key}}", "header person"),
            ("{url: 'https://x.test/mcp', auth: {type: api-key, query: k}}", "query person"),
            ("{url: 'https://x.test/mcp?k=1', auth: {type: api-key, query: k, env: K}}", "none"),
            (
                "{url: 'https://x.test/mcp', headers: {X-Key: k}, auth: {type: api-key, header: x-key}}",
                "none",
            ),
            ("{command: x, auth: {type: api-key, env: K}}", "variable person"),
            ("{command: x, env: {K: k}, auth: {type: api-key, env: K}}", "none"),
            ("{command: x}", "none"),
            ("{document: ./x.yaml}", "none"),
        ] {
            let server: Server = serde_saphyr::from_str(entry).unwrap();
            let said = login_spec("x", &server, &Net::default()).map_or("none".to_owned(), |login| {
                let way = match login.auth {
                    Auth::OAuth(OAuth { flow: Flow::Device, .. }) => "device",
                    Auth::OAuth(_) => "oauth",
                    Auth::Key(KeyPlacement::Header { .. }) => "header",
                    Auth::Key(KeyPlacement::Query(_)) => "query",
                    Auth::Key(KeyPlacement::Environment(_)) => "variable",
                };
                format!("{way} {}", if login.sharing == LoginSharing::Shared { "shared" } else { "person" })
            });
            assert_eq!(said, wanted, "{entry}");
        }
    }
}
