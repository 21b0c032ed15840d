//! The device grant (RFC 8628): a person enters a short code on any machine, and the hub asks until they have.

use super::authorize::{Started, Way};
use super::client::Client;
use super::grant::{Grant, Source};
use super::issuer::{DEVICE_GRANT, Issuer};
use super::settings::LoginSpec;
use super::shelf::Shelf;
use super::token::{self, Refused, seconds};
use super::web::Web;
use octo_grants::Secret;
use octo_grants::credentials::Waiting;
use octo_model::ToolError;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Seconds between two questions: what the standard says, and what we keep to whatever a server says.
const INTERVAL: u64 = 5;
const SHORTEST: u64 = 1;
const LONGEST: u64 = 60;
/// Added when the server finds us too quick.
const SLOWER: u64 = 5;
/// Seconds that a code lasts at most.
pub(super) const LIFE: i64 = 1800;

#[derive(Deserialize)]
struct Answer {
    device_code: Secret,
    user_code: String,
    #[serde(alias = "verification_url")]
    verification_uri: String,
    verification_uri_complete: Option<String>,
    expires_in: Option<Value>,
    interval: Option<Value>,
}

/// What a person has to do.
pub(super) struct Asked {
    pub(super) code: Secret,
    pub(super) interval: u64,
    pub(super) user_code: String,
    pub(super) url: String,
    pub(super) url_with_code: Option<String>,
    pub(super) life: i64,
}

pub(super) async fn ask(
    web: &Web<'_>,
    issuer: &Issuer,
    client: &Client,
    scopes: &[String],
    resource: &str,
) -> Result<Asked, ToolError> {
    let endpoint = issuer.device_authorization_endpoint.as_deref().unwrap_or_default();
    let scope = scopes.join(" ");
    let mut form = vec![("resource", resource)];
    if !scope.is_empty() {
        form.push(("scope", scope.as_str()));
    }
    let authorization = client.prove(&mut form);
    let (status, body) = web.post_form(endpoint, &form, authorization).await?;
    let refused = || {
        ToolError::unavailable("The authorization server gave no code to enter.")
            .hint("Try again later, or log in with a browser.")
            .detail(format!("HTTP status {}", status.as_u16()))
    };
    let answer: Answer =
        serde_json::from_slice(&body).ok().filter(|_| status.is_success()).ok_or_else(refused)?;
    if !is_plain(&answer.user_code) || answer.device_code.is_empty() {
        return Err(refused());
    }
    let page = issuer.page_of_own(web, &answer.verification_uri)?;
    let whole = answer.verification_uri_complete.and_then(|url| issuer.page_of_own(web, &url).ok());
    Ok(Asked {
        code: answer.device_code,
        interval: answer
            .interval
            .as_ref()
            .and_then(seconds)
            .map_or(INTERVAL, i64::cast_unsigned)
            .clamp(SHORTEST, LONGEST),
        user_code: answer.user_code,
        url: page.into(),
        url_with_code: whole.map(String::from),
        life: answer.expires_in.as_ref().and_then(seconds).unwrap_or(LIFE).clamp(1, LIFE),
    })
}

/// What a person can read and type.
fn is_plain(code: &str) -> bool {
    (1..=64).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
}

/// Asks until the person has entered the code, or it is too late. The login counts only while it still waits: one that was
/// begun anew, or cancelled, is not finished behind anybody's back.
pub(super) async fn follow(
    shelf: Arc<Shelf>,
    spec: Arc<LoginSpec>,
    waiting: Waiting,
    started: Started,
    life: i64,
) {
    let account = (waiting.owner, waiting.server);
    let until = Instant::now() + Duration::from_secs(life.cast_unsigned());
    let outcome = tokio::time::timeout_at(until, poll(&shelf, &spec, &started)).await;
    let still = shelf.store.take(&waiting.id, shelf.now()).await;
    let why = match (outcome, still) {
        (Ok(Ok(grant)), Ok(Some(_))) => match super::logins::keep(&shelf, &account, &started, grant).await {
            Ok(()) => return,
            Err(error) => error.message.into_owned(),
        },
        (_, Ok(None)) => return,
        (Ok(Ok(_)), Err(error)) => error.message.into_owned(),
        (Ok(Err(refused)), _) => said(refused),
        (Err(_), _) => "The code has expired.".to_owned(),
    };
    shelf.failed(account, why);
}

async fn poll(shelf: &Shelf, spec: &LoginSpec, started: &Started) -> Result<Grant, Refused> {
    let Way::Device { code, interval } = &started.way else {
        return Err(Refused::No("invalid_request".to_owned()));
    };
    let web = Web::of(spec);
    let endpoint = started.issuer.token_endpoint()?;
    let mut interval = *interval;
    loop {
        tokio::time::sleep(Duration::from_secs(interval)).await;
        let form = vec![
            ("grant_type", DEVICE_GRANT),
            ("device_code", code.expose()),
            ("resource", started.resource.as_str()),
        ];
        match token::ask(&web, endpoint, &started.client, form).await {
            Ok(tokens) => {
                let source = Source::of(started)?;
                return Ok(Grant::new(&started.url, tokens, started.scopes.clone(), source, shelf.now()));
            }
            Err(refused) if refused.is("authorization_pending") => {}
            Err(refused) if refused.is("slow_down") => interval = (interval + SLOWER).min(LONGEST),
            // Nobody answered: less and less often, as the standard asks.
            Err(Refused::Failed(_)) => interval = (interval * 2).min(LONGEST),
            Err(refused) => return Err(refused),
        }
    }
}

fn said(refused: Refused) -> String {
    match &refused {
        Refused::No(code) if code == "access_denied" => "The login was declined.".to_owned(),
        Refused::No(code) if code == "expired_token" => "The code has expired.".to_owned(),
        _ => refused.into_error().message.into_owned(),
    }
}
