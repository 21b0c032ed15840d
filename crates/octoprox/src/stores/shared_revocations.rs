//! Tokens that are refused by all hubs that share a database, whatever their own settings say.

use crate::app_context::block_on_current_thread;
use crate::app_error::AppError;
use crate::settings::{Environment, Settings};
use crate::stores::stores_with_logins;
use octo_mcp::Mcp;
use octo_ports::{FleetRecords, StoreResult};
use octo_web::Tokens;
use std::sync::Arc;
use std::time::Duration;

/// Names of the records; the digest of the token follows.
const PREFIX: &str = "revoked-token/";
/// How often the records are read without a notification, which may be lost.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// How soon they are read again after a failure.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// Records for all hubs that the token with this digest is refused. Returns false if the settings name no database.
pub fn revoke_everywhere(settings: &Settings, sha256: &str, name: &str) -> Result<bool, AppError> {
    if settings.store.postgres.is_none() {
        return Ok(false);
    }
    block_on_current_thread(async {
        let Some(records) = stores_with_logins(settings, &Environment::current())?.fleet_records else {
            return Ok(false);
        };
        let name_of_record = format!("{PREFIX}{}", sha256.to_ascii_lowercase());
        records.put(&name_of_record, name).await?;
        Ok(true)
    })
}

/// Reads the records once. A database that cannot be reached fails all calls by itself.
pub async fn apply(records: Option<&Arc<dyn FleetRecords>>, tokens: &Tokens) {
    let Some(records) = records else { return };
    if let Err(error) = refuse_revoked(&**records, tokens).await {
        tracing::warn!(%error, "cannot read which tokens are revoked");
    }
}

async fn refuse_revoked(records: &dyn FleetRecords, tokens: &Tokens) -> StoreResult<Vec<String>> {
    let revoked = records.with_prefix(PREFIX).await?;
    Ok(tokens.refuse(revoked.iter().filter_map(|(name, _)| name.strip_prefix(PREFIX))))
}

/// Refuses what was revoked anywhere, from now on. Needs a runtime.
pub fn follow(records: Option<Arc<dyn FleetRecords>>, tokens: Tokens, mcp: &Arc<Mcp>) {
    if let Some(records) = records {
        tokio::spawn(follow_records(records, tokens, Arc::clone(mcp)));
    }
}

async fn follow_records(records: Arc<dyn FleetRecords>, tokens: Tokens, mcp: Arc<Mcp>) {
    let mut changes = records.changes();
    let mut reported = Vec::new();
    loop {
        let wait = match refuse_revoked(&*records, &tokens).await {
            Ok(callers) => {
                mcp.end_revoked_callers(|caller| tokens.still_accepts(caller));
                for caller in callers.iter().filter(|caller| !reported.contains(*caller)) {
                    tracing::warn!(
                        caller,
                        "a token of the settings is revoked for all hubs; remove it from auth.tokens"
                    );
                }
                reported = callers;
                POLL_INTERVAL
            }
            Err(error) => {
                tracing::warn!(%error, "cannot read which tokens are revoked");
                RETRY_INTERVAL
            }
        };
        let _ = tokio::time::timeout(wait, changes.changed()).await;
    }
}
