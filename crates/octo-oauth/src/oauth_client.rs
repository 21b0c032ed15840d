//! Identity of the hub at an authorization server: from the settings, a metadata document, or a registration.

use crate::auth_http::{AuthHttp, display_url, is_on_this_machine};
use crate::issuer::{DEVICE_GRANT, Issuer};
use crate::login_spec::{ClientIdentity, OAuth};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use octo_model::{Json, ToolError};
use octo_model::{Secret, exposed_secret};
use octo_ports::{Credentials, Owner, Slot};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::form_urlencoded::byte_serialize;

/// A registration that expires sooner is not used for a new login.
const MIN_REMAINING_SECS: i64 = 3600;

/// Client authentication method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ClientAuth {
    #[serde(rename = "none")]
    Public,
    #[serde(rename = "client_secret_basic")]
    Basic,
    #[serde(rename = "client_secret_post")]
    Post,
}

impl ClientAuth {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Public, "none"), (Self::Basic, "client_secret_basic"), (Self::Post, "client_secret_post")];

    fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(one, _)| *one == self).map_or("none", |(_, name)| name)
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, one)| *one == name).map(|(proof, _)| proof)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OAuthClient {
    pub(crate) id: String,
    #[serde(default, with = "exposed_secret")]
    pub(crate) secret: Option<Secret>,
    pub(crate) proof: ClientAuth,
}

impl OAuthClient {
    fn new(id: String, secret: Option<Secret>, issuer: &Issuer) -> Self {
        let proof = if secret.is_none() { ClientAuth::Public } else { secret_auth(issuer) };
        Self { id, secret, proof }
    }

    /// Adds the client authentication to a form, or returns its header.
    pub(crate) fn authenticate<'a>(&'a self, form: &mut Vec<(&'a str, &'a str)>) -> Option<HeaderValue> {
        let secret = self.secret.as_ref().map(Secret::expose).unwrap_or_default();
        if self.proof == ClientAuth::Basic {
            let pair =
                [self.id.as_str(), secret].map(|part| byte_serialize(part.as_bytes()).collect::<String>());
            let mut value =
                HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair.join(":")))).ok()?;
            value.set_sensitive(true);
            return Some(value);
        }
        form.push(("client_id", self.id.as_str()));
        if self.proof == ClientAuth::Post {
            form.push(("client_secret", secret));
        }
        None
    }
}

fn secret_auth(issuer: &Issuer) -> ClientAuth {
    let known = issuer.token_endpoint_auth_methods_supported.as_deref();
    let knows = |proof: ClientAuth| known.is_none_or(|all| all.iter().any(|one| one == proof.name()));
    if !knows(ClientAuth::Basic) && knows(ClientAuth::Post) { ClientAuth::Post } else { ClientAuth::Basic }
}

/// A stored registration. It belongs to its issuer and is used at no other.
#[derive(Serialize, Deserialize)]
struct Registration {
    client: OAuthClient,
    redirect: String,
    until: Option<i64>,
}

fn registration_slot(issuer: &Issuer) -> Slot {
    Slot::new(Owner::Shared, "", issuer.issuer.clone())
}

/// Returns the client for a new login.
pub(crate) async fn identify(
    web: &AuthHttp<'_>,
    store: &Credentials,
    identity: &ClientIdentity,
    oauth: &OAuth,
    issuer: &Issuer,
    now: i64,
) -> Result<OAuthClient, ToolError> {
    if let Some(id) = &oauth.client_id {
        if oauth.client_secret.is_some() && !web.is_configured_issuer(&issuer.issuer) {
            return Err(unnamed_issuer_error(&issuer.issuer));
        }
        return Ok(OAuthClient::new(id.clone(), oauth.client_secret.clone(), issuer));
    }
    if issuer.client_id_metadata_document_supported
        && let Some(document) = &identity.metadata_url
    {
        return Ok(OAuthClient { id: document.clone(), secret: None, proof: ClientAuth::Public });
    }
    if let Some(client) = stored_registration(store, identity, issuer, now).await {
        return Ok(client);
    }
    let endpoint = issuer.registration_endpoint.as_deref().ok_or_else(|| {
        ToolError::unavailable("The authorization server does not support client registration.").hint(
            "Register the hub there by hand and put `client_id` (and `client_secret`) into the server's `auth`.",
        )
    })?;
    let registered = register(web, endpoint, identity, issuer).await?;
    if let Ok(text) = serde_json::to_string(&registered) {
        store.put(&registration_slot(issuer), Secret::new(text), None).await?;
    }
    Ok(registered.client)
}

/// A secret belongs to one authorization server, and only the settings can name it.
fn unnamed_issuer_error(issuer: &str) -> ToolError {
    ToolError::denied("The settings have a client secret for this server, but do not name its authorization server.").hint(format!(
        "The server names {}. If that is who issued the secret, ask the operator to add `issuer: {}` to the server's `auth`. Nothing was sent.",
        display_url(issuer),
        display_url(issuer).trim_matches('`')
    ))
}

async fn stored_registration(
    store: &Credentials,
    identity: &ClientIdentity,
    issuer: &Issuer,
    now: i64,
) -> Option<OAuthClient> {
    let kept = store.find(&registration_slot(issuer)).await.ok()??;
    let known: Registration = serde_json::from_str(kept.secret.expose()).ok()?;
    let lasts = known.until.is_none_or(|until| until > now.saturating_add(MIN_REMAINING_SECS));
    (lasts && known.redirect == identity.redirect_uri).then_some(known.client)
}

/// The issuer no longer knows the hub.
pub(crate) async fn forget_registration(store: &Credentials, issuer: &str) -> Result<(), ToolError> {
    store.remove(&Slot::new(Owner::Shared, "", issuer)).await?;
    Ok(())
}

/// Metadata of the hub for a document or a registration.
pub(crate) fn client_metadata(identity: &ClientIdentity, proof: ClientAuth) -> Value {
    json!({
        "client_name": identity.name,
        "redirect_uris": [identity.redirect_uri],
        "grant_types": ["authorization_code", "refresh_token", DEVICE_GRANT],
        "response_types": ["code"],
        "token_endpoint_auth_method": proof.name(),
        "application_type": if is_on_this_machine(&identity.redirect_uri) { "native" } else { "web" },
    })
}

#[derive(Deserialize)]
struct RegistrationResponse {
    client_id: String,
    client_secret: Option<Secret>,
    #[serde(default)]
    client_secret_expires_at: i64,
    token_endpoint_auth_method: Option<String>,
}

async fn register(
    web: &AuthHttp<'_>,
    endpoint: &str,
    identity: &ClientIdentity,
    issuer: &Issuer,
) -> Result<Registration, ToolError> {
    let known = issuer.token_endpoint_auth_methods_supported.as_deref();
    let proof = match known {
        Some(all) if !all.iter().any(|one| one == "none") => secret_auth(issuer),
        _ => ClientAuth::Public,
    };
    let mut asked = client_metadata(identity, proof);
    // Some servers refuse a registration with grant types that they do not support.
    if let (false, Some(grants)) =
        (issuer.supports_device(), asked.get_mut("grant_types").and_then(Value::as_array_mut))
    {
        grants.retain(|grant| grant != DEVICE_GRANT);
    }
    let (status, body) = web.post_json(endpoint, &Json::from(asked)).await?;
    let answer: Option<RegistrationResponse> =
        serde_json::from_slice(&body).ok().filter(|_| status.is_success());
    let answer = answer.filter(|answer| !answer.client_id.is_empty()).ok_or_else(|| {
        ToolError::unavailable("The authorization server did not register the hub.")
            .hint("Register the hub there by hand and put `client_id` into the server's `auth`.")
            .detail(format!("HTTP status {}", status.as_u16()))
    })?;
    let secret = answer.client_secret.filter(|secret| !secret.is_empty());
    let until =
        (secret.is_some() && answer.client_secret_expires_at > 0).then_some(answer.client_secret_expires_at);
    let mut client = OAuthClient::new(answer.client_id, secret, issuer);
    if let Some(proof) = answer.token_endpoint_auth_method.as_deref().and_then(ClientAuth::from_name)
        && (client.secret.is_some() || proof == ClientAuth::Public)
    {
        client.proof = proof;
    }
    Ok(Registration { client, redirect: identity.redirect_uri.clone(), until })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issuer(methods: &[&str]) -> Issuer {
        let methods = methods.iter().map(ToString::to_string).collect();
        Issuer { token_endpoint_auth_methods_supported: Some(methods), ..Issuer::default() }
    }

    #[test]
    fn a_client_proves_itself_in_a_way_that_the_server_knows() {
        for (methods, proof) in [
            (&["client_secret_basic", "client_secret_post"][..], ClientAuth::Basic),
            (&["client_secret_post"], ClientAuth::Post),
            (&["none", "client_secret_post"], ClientAuth::Post),
            (&["private_key_jwt"], ClientAuth::Basic),
        ] {
            let client = OAuthClient::new("i:d".into(), Some(Secret::new("s e")), &issuer(methods));
            assert_eq!(client.proof, proof, "{methods:?}");
            let mut form = Vec::new();
            let header = client.authenticate(&mut form);
            match proof {
                ClientAuth::Basic => assert_eq!(header.unwrap(), "Basic aSUzQWQ6cytl"),
                _ => assert_eq!(form, [("client_id", "i:d"), ("client_secret", "s e")]),
            }
        }
        let public = OAuthClient::new("id".into(), None, &issuer(&["none"]));
        let mut form = Vec::new();
        assert_eq!((public.authenticate(&mut form), form), (None, vec![("client_id", "id")]));
    }

    #[test]
    fn the_hub_says_whether_it_is_on_somebodys_machine() {
        for (redirect, kind) in [
            ("http://localhost:3100/auth/callback", "native"),
            ("http://127.0.0.1:3100/auth/callback", "native"),
            ("https://hub.example/auth/callback", "web"),
        ] {
            assert_eq!(
                client_metadata(&ClientIdentity::new(redirect), ClientAuth::Public)["application_type"],
                kind
            );
        }
    }
}
