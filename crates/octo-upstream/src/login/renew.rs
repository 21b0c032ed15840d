//! Renewing a login: once, however many callers and processes ask for it.

use super::client::forget;
use super::grant::{Grant, Held, Mark};
use super::settings::LoginSpec;
use super::shelf::Shelf;
use super::token::{self, Refused, Tokens};
use super::web::Web;
use octo_grants::Secret;
use octo_grants::credentials::{Claim, Slot};
use octo_model::{Kind, ToolError};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Longer than a question to the server may take, so that a turn ends only with its process.
const TURN: Duration = Duration::from_secs(40);
/// How long others wait for whoever has the turn.
const PATIENCE: Duration = Duration::from_secs(45);
/// How often they look.
const LOOK: Duration = Duration::from_millis(40);
/// After a failure the server is left alone for so long.
const REST: Duration = Duration::from_secs(10);

/// The login after `seen`, whoever renewed it. It goes on when nobody waits for it any more: an answer that nobody writes
/// down is a refresh token lost.
pub(super) async fn renew(
    shelf: &Arc<Shelf>,
    spec: &Arc<LoginSpec>,
    slot: &Slot,
    seen: Mark,
) -> Result<Option<Held>, ToolError> {
    let (shelf, spec, slot) = (shelf.clone(), spec.clone(), slot.clone());
    let task = tokio::spawn(async move { renewed(&shelf, &spec, &slot, seen).await });
    task.await.unwrap_or_else(|error| Err(ToolError::internal(error)))
}

async fn renewed(
    shelf: &Shelf,
    spec: &LoginSpec,
    slot: &Slot,
    seen: Mark,
) -> Result<Option<Held>, ToolError> {
    let gate = shelf.gate(slot);
    let _turn = gate.lock().await;
    let until = Instant::now() + PATIENCE;
    loop {
        let Some(held) = shelf.load(slot).await? else { return Ok(None) };
        if held.mark() != seen || held.grant.refresh.is_none() {
            return Ok(Some(held));
        }
        if let Some(why) = shelf.resting(slot) {
            return Err(why);
        }
        if shelf.store.claim(slot, &shelf.holder, TURN).await? == Claim::Ours {
            break;
        }
        if Instant::now() > until {
            return Err(ToolError::unavailable(format!("The login at {} is being renewed.", spec.server))
                .hint("Try again in a moment.")
                .retry_after(Duration::from_secs(5)));
        }
        tokio::time::sleep(LOOK).await;
    }
    let outcome = in_turn(shelf, spec, slot, seen).await;
    if let Err(error) = shelf.store.release(slot, &shelf.holder).await {
        tracing::warn!(target: "upstream", server = %spec.server, %error, "a turn ends by itself");
    }
    outcome
}

/// Looks once more: whoever had the turn before may have done it.
async fn in_turn(
    shelf: &Shelf,
    spec: &LoginSpec,
    slot: &Slot,
    seen: Mark,
) -> Result<Option<Held>, ToolError> {
    let Some(held) = shelf.load(slot).await? else { return Ok(None) };
    if held.mark() != seen {
        return Ok(Some(held));
    }
    let grant = match asked(spec, &held.grant).await {
        Ok(tokens) => held.grant.clone().renewed(tokens, shelf.now()),
        Err(refused) => ended(shelf, slot, held.grant.clone(), refused).await?,
    };
    match shelf.replace(held, grant).await {
        // Somebody has logged in anew, or out, and that counts.
        Err(error) if error.kind == Kind::Conflict => shelf.load(slot).await,
        replaced => {
            let held = replaced?;
            if let Some(why) = &held.grant.lost {
                shelf.announce_loss(slot, why);
            }
            Ok(Some(held))
        }
    }
}

async fn asked(spec: &LoginSpec, grant: &Grant) -> Result<Tokens, Refused> {
    let (Some(source), Some(refresh)) = (&grant.source, &grant.refresh) else {
        return Err(Refused::No("invalid_grant".to_owned()));
    };
    // Scopes are not named: they stay what they were.
    let form = vec![
        ("grant_type", "refresh_token"),
        ("refresh_token", Secret::expose(refresh)),
        ("resource", source.resource.as_str()),
    ];
    token::ask(&Web::of(spec), &source.token_endpoint, &source.client, form).await
}

/// A refusal for good ends the login and says so to everybody; any other is an error for now.
async fn ended(shelf: &Shelf, slot: &Slot, grant: Grant, refused: Refused) -> Result<Grant, ToolError> {
    let why = match &refused {
        Refused::No(code) if code == "invalid_grant" => "The login has expired or was revoked.",
        Refused::No(code) if code == "invalid_client" || code == "unauthorized_client" => {
            forget(&shelf.store, &slot.issuer).await?;
            "The authorization server does not know the hub any more."
        }
        _ => {
            let error = ToolError::unavailable(format!("The login at {} could not be renewed.", slot.server))
                .hint("Try again in a moment.")
                .retry_after(REST)
                .detail(format!("{refused:?}"));
            shelf.rest(slot, REST, error.clone());
            return Err(error);
        }
    };
    Ok(grant.lost(why))
}
