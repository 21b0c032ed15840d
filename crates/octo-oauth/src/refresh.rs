//! Refresh of a login: once, however many callers and processes request it.

use crate::auth_http::AuthHttp;
use crate::login_registry::LoginRegistry;
use crate::login_spec::LoginSpec;
use crate::oauth_client::forget_registration;
use crate::token_endpoint::{self, TokenError, TokenResponse};
use crate::token_set::{LoginVersion, StoredLogin, TokenSet};
use octo_model::Secret;
use octo_model::{Kind, ToolError, sha256_hex};
use octo_ports::Slot;
use octo_ports::leases::LEASE_CHECK_INTERVAL;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Longer than a request to the server may take, so a lease expires only if its process dies.
const LEASE_DURATION: Duration = Duration::from_secs(40);
/// Maximum wait for the holder of the lease.
const LEASE_WAIT_TIMEOUT: Duration = Duration::from_secs(45);
/// Delay after a failed refresh.
const RETRY_DELAY: Duration = Duration::from_secs(10);

/// Returns the login after `seen`, whichever process refreshed it. Runs to completion even if the caller gives up: a
/// response that is not stored is a lost refresh token.
pub(crate) async fn refresh(
    registry: &Arc<LoginRegistry>,
    spec: &Arc<LoginSpec>,
    slot: &Slot,
    seen: LoginVersion,
) -> Result<Option<StoredLogin>, ToolError> {
    let (registry, spec, slot) = (registry.clone(), spec.clone(), slot.clone());
    let task = tokio::spawn(async move { refresh_exclusively(&registry, &spec, &slot, seen).await });
    task.await.unwrap_or_else(|error| Err(ToolError::internal(error)))
}

async fn refresh_exclusively(
    registry: &LoginRegistry,
    spec: &LoginSpec,
    slot: &Slot,
    seen: LoginVersion,
) -> Result<Option<StoredLogin>, ToolError> {
    let gate = registry.refresh_lock(slot);
    let _turn = gate.lock().await;
    let until = Instant::now() + LEASE_WAIT_TIMEOUT;
    let mut changes = registry.leases.changes();
    let lease = loop {
        let Some(held) = registry.load(slot).await? else { return Ok(None) };
        if held.version() != seen || held.tokens.refresh.is_none() {
            return Ok(Some(held));
        }
        if let Some(why) = registry.recent_refresh_failure(slot) {
            return Err(why);
        }
        if let Some(lease) = registry.leases.acquire(&lease_name(slot), LEASE_DURATION).await? {
            break lease;
        }
        if Instant::now() > until {
            return Err(ToolError::unavailable(format!("The login at {} is being refreshed.", spec.server))
                .hint("Try again in a moment.")
                .retry_after(Duration::from_secs(5)));
        }
        let _ = tokio::time::timeout(LEASE_CHECK_INTERVAL, changes.changed()).await;
    };
    drop(changes);
    let outcome = refresh_with_lease(registry, spec, slot, seen).await;
    if let Err(error) = registry.leases.release(&lease).await {
        tracing::warn!(target: "upstream", server = %spec.server, %error, "cannot release the lease; it will expire");
    }
    outcome
}

/// Name of the lease for refreshing a credential.
fn lease_name(slot: &Slot) -> String {
    let [kind, tenant, subject] = slot.owner.parts();
    let parts = [kind, tenant, subject, &slot.server, &slot.issuer];
    format!("login {}", sha256_hex(format!("{parts:?}").as_bytes()))
}

/// Checks once more: the previous holder of the lease may have refreshed it.
async fn refresh_with_lease(
    registry: &LoginRegistry,
    spec: &LoginSpec,
    slot: &Slot,
    seen: LoginVersion,
) -> Result<Option<StoredLogin>, ToolError> {
    let Some(held) = registry.load(slot).await? else { return Ok(None) };
    if held.version() != seen {
        return Ok(Some(held));
    }
    let grant = match request_refresh(spec, &held.tokens).await {
        Ok(tokens) => held.tokens.clone().refreshed(tokens, registry.now()),
        Err(refused) => after_refusal(registry, slot, held.tokens.clone(), refused).await?,
    };
    match registry.replace(held, grant).await {
        // A new login or a logout in the meantime takes precedence.
        Err(error) if error.kind == Kind::Conflict => registry.load(slot).await,
        replaced => {
            let held = replaced?;
            if let Some(why) = &held.tokens.lost {
                registry.announce_loss(slot, why);
            }
            Ok(Some(held))
        }
    }
}

async fn request_refresh(spec: &LoginSpec, grant: &TokenSet) -> Result<TokenResponse, TokenError> {
    let (Some(source), Some(refresh)) = (&grant.source, &grant.refresh) else {
        return Err(TokenError::Denied("invalid_grant".to_owned()));
    };
    // Scopes are omitted: they stay the same.
    let form = vec![
        ("grant_type", "refresh_token"),
        ("refresh_token", Secret::expose(refresh)),
        ("resource", source.resource.as_str()),
    ];
    token_endpoint::request_tokens(&AuthHttp::new(spec), &source.token_endpoint, &source.client, form).await
}

/// A permanent refusal ends the login and is announced; any other is a temporary error.
async fn after_refusal(
    registry: &LoginRegistry,
    slot: &Slot,
    grant: TokenSet,
    refused: TokenError,
) -> Result<TokenSet, ToolError> {
    let why = match &refused {
        TokenError::Denied(code) if code == "invalid_grant" => "The login has expired or was revoked.",
        TokenError::Denied(code) if code == "invalid_client" || code == "unauthorized_client" => {
            forget_registration(&registry.store, &slot.issuer).await?;
            "The authorization server no longer knows the hub."
        }
        _ => {
            let error =
                ToolError::unavailable(format!("The login at {} could not be refreshed.", slot.server))
                    .hint("Try again in a moment.")
                    .retry_after(RETRY_DELAY)
                    .detail(format!("{refused:?}"));
            registry.set_refresh_failure(slot, RETRY_DELAY, error.clone());
            return Err(error);
        }
    };
    Ok(grant.invalidated(why))
}
