//! Device grant (RFC 8628): a person enters a short code on any machine, and the hub polls until they have.

use crate::auth_http::AuthHttp;
use crate::authorization_code::{LoginFlow, LoginFlowKind};
use crate::issuer::{DEVICE_GRANT, Issuer};
use crate::login_registry::LoginRegistry;
use crate::login_spec::LoginSpec;
use crate::oauth_client::OAuthClient;
use crate::token_endpoint::{self, TokenError, parse_seconds};
use crate::token_set::{TokenSet, TokenSource};
use octo_model::Secret;
use octo_model::ToolError;
use octo_ports::PendingLogin;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Seconds between two polls: the default of the standard, and the limits applied to what a server requests.
const DEFAULT_POLL_SECS: u64 = 5;
const MIN_POLL_SECS: u64 = 1;
const MAX_POLL_SECS: u64 = 60;
/// Added after `slow_down`.
const SLOW_DOWN_SECS: u64 = 5;
/// Maximum lifetime of a code, in seconds.
pub(crate) const MAX_CODE_LIFETIME_SECS: i64 = 1800;

#[derive(Deserialize)]
struct DeviceResponse {
    device_code: Secret,
    user_code: String,
    #[serde(alias = "verification_url")]
    verification_uri: String,
    verification_uri_complete: Option<String>,
    expires_in: Option<Value>,
    interval: Option<Value>,
}

/// Device code for a person to enter.
pub(crate) struct DeviceCode {
    pub(crate) code: Secret,
    pub(crate) interval: u64,
    pub(crate) user_code: String,
    pub(crate) url: String,
    pub(crate) url_with_code: Option<String>,
    pub(crate) lifetime: i64,
}

pub(crate) async fn request_code(
    web: &AuthHttp<'_>,
    issuer: &Issuer,
    client: &OAuthClient,
    scopes: &[String],
    resource: &str,
) -> Result<DeviceCode, ToolError> {
    let endpoint = issuer.device_authorization_endpoint.as_deref().unwrap_or_default();
    let scope = scopes.join(" ");
    let mut form = vec![("resource", resource)];
    if !scope.is_empty() {
        form.push(("scope", scope.as_str()));
    }
    let authorization = client.authenticate(&mut form);
    let (status, body) = web.post_form(endpoint, &form, authorization).await?;
    let refused = || {
        ToolError::unavailable("The authorization server returned no device code.")
            .hint("Try again later, or log in with a browser.")
            .detail(format!("HTTP status {}", status.as_u16()))
    };
    let answer: DeviceResponse =
        serde_json::from_slice(&body).ok().filter(|_| status.is_success()).ok_or_else(refused)?;
    if !is_typeable(&answer.user_code) || answer.device_code.is_empty() {
        return Err(refused());
    }
    let page = issuer.own_site_url(web, &answer.verification_uri)?;
    let whole = answer.verification_uri_complete.and_then(|url| issuer.own_site_url(web, &url).ok());
    Ok(DeviceCode {
        code: answer.device_code,
        interval: answer
            .interval
            .as_ref()
            .and_then(parse_seconds)
            .map_or(DEFAULT_POLL_SECS, i64::cast_unsigned)
            .clamp(MIN_POLL_SECS, MAX_POLL_SECS),
        user_code: answer.user_code,
        url: page.into(),
        url_with_code: whole.map(String::from),
        lifetime: answer
            .expires_in
            .as_ref()
            .and_then(parse_seconds)
            .unwrap_or(MAX_CODE_LIFETIME_SECS)
            .clamp(1, MAX_CODE_LIFETIME_SECS),
    })
}

/// Whether a person can read and type it.
fn is_typeable(code: &str) -> bool {
    (1..=64).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
}

/// Polls until the person has entered the code, or it has expired. The login is stored only if it is still pending: one
/// that was restarted or cancelled is not completed.
pub(crate) async fn poll_to_end(
    registry: Arc<LoginRegistry>,
    spec: Arc<LoginSpec>,
    waiting: PendingLogin,
    started: LoginFlow,
    life: i64,
) {
    let account = (waiting.owner, waiting.server);
    let until = Instant::now() + Duration::from_secs(life.cast_unsigned());
    let outcome = tokio::time::timeout_at(until, poll(&registry, &spec, &started)).await;
    let still = registry.store.take_pending(&waiting.id, registry.now()).await;
    let why = match (outcome, still) {
        (Ok(Ok(grant)), Ok(Some(_))) => {
            match registry.store_login(&account, &started.issuer.issuer, &grant).await {
                Ok(()) => return,
                Err(error) => error.message.into_owned(),
            }
        }
        (_, Ok(None)) => return,
        (Ok(Ok(_)), Err(error)) => ToolError::from(error).message.into_owned(),
        (Ok(Err(refused)), _) => refusal_message(refused),
        (Err(_), _) => "The code has expired.".to_owned(),
    };
    registry.set_failure(account, why);
}

async fn poll(
    registry: &LoginRegistry,
    spec: &LoginSpec,
    started: &LoginFlow,
) -> Result<TokenSet, TokenError> {
    let LoginFlowKind::Device { code, interval } = &started.way else {
        return Err(TokenError::Denied("invalid_request".to_owned()));
    };
    let web = AuthHttp::new(spec);
    let endpoint = started.issuer.token_endpoint()?;
    let mut interval = *interval;
    loop {
        tokio::time::sleep(Duration::from_secs(interval)).await;
        let form = vec![
            ("grant_type", DEVICE_GRANT),
            ("device_code", code.expose()),
            ("resource", started.resource.as_str()),
        ];
        match token_endpoint::request_tokens(&web, endpoint, &started.client, form).await {
            Ok(tokens) => {
                let source = TokenSource::of(started)?;
                return Ok(TokenSet::new(
                    &started.url,
                    tokens,
                    started.scopes.clone(),
                    source,
                    registry.now(),
                ));
            }
            Err(refused) if refused.has_code("authorization_pending") => {}
            Err(refused) if refused.has_code("slow_down") => {
                interval = (interval + SLOW_DOWN_SECS).min(MAX_POLL_SECS)
            }
            // No response: poll less often, as the standard requires.
            Err(TokenError::Unavailable(_)) => interval = (interval * 2).min(MAX_POLL_SECS),
            Err(refused) => return Err(refused),
        }
    }
}

fn refusal_message(refused: TokenError) -> String {
    match &refused {
        TokenError::Denied(code) if code == "access_denied" => "The login was declined.".to_owned(),
        TokenError::Denied(code) if code == "expired_token" => "The code has expired.".to_owned(),
        _ => refused.into_error().message.into_owned(),
    }
}
