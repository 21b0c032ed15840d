//! Refreshes unused logins, so that refresh tokens that expire without use stay valid, and detects lost logins.

use crate::login_registry::LoginRegistry;
use crate::login_spec::{Auth, LoginSpec};
use crate::refresh::refresh;
use crate::token_set::StoredLogin;
use futures_util::{StreamExt, stream};
use octo_ports::Slot;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Maximum interval between sweeps: other processes log in and refresh as well.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// Minimum interval between sweeps.
const MIN_SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// A sweep takes at most one part in this many of the time.
const SWEEP_INTERVAL_FACTOR: u32 = 20;
/// Concurrent refreshes.
const MAX_CONCURRENT_REFRESHES: usize = 4;
/// Maximum jitter, in seconds, between logins that were made together.
const MAX_JITTER_SECS: u64 = 30;
/// Minimum seconds between two refreshes of a login, however short its tokens live.
const MIN_REFRESH_INTERVAL_SECS: i64 = 5;
/// Delay after a failed refresh, doubled each time, and its maximum.
const FIRST_RETRY_DELAY: Duration = Duration::from_secs(30);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(15 * 60);

/// Refreshes logins before their tokens expire, until stopped. Of several hubs with one store, one refreshes.
pub(crate) async fn keep_alive(registry: Arc<LoginRegistry>, stop: CancellationToken) {
    let mut changes = registry.version.subscribe();
    let mut retries = Retries::default();
    loop {
        let begun = Instant::now();
        let next = tokio::select! {
            next = sweep(&registry, &mut retries) => next,
            () = stop.cancelled() => return,
        };
        let least = MIN_SWEEP_INTERVAL.max(begun.elapsed() * SWEEP_INTERVAL_FACTOR);
        let begins = async {
            tokio::time::sleep(least).await;
            tokio::select! {
                () = tokio::time::sleep(next.saturating_sub(least)) => {}
                _ = changes.changed() => {}
            }
        };
        tokio::select! {
            () = begins => {}
            () = stop.cancelled() => return,
        }
    }
}

/// Failed refreshes: number of attempts, and the time of the next one.
#[derive(Default)]
struct Retries(HashMap<Slot, (u32, Instant)>);

impl Retries {
    fn wait(&self, slot: &Slot) -> Option<Duration> {
        let (_, at) = self.0.get(slot)?;
        Some(at.saturating_duration_since(Instant::now())).filter(|wait| !wait.is_zero())
    }

    fn record(&mut self, slot: Slot, is_renewed: bool) {
        if is_renewed {
            self.0.remove(&slot);
            return;
        }
        let tries = self.0.get(&slot).map_or(0, |(tries, _)| *tries);
        let wait = FIRST_RETRY_DELAY.saturating_mul(1 << tries.min(8)).min(MAX_RETRY_DELAY);
        self.0.insert(slot, (tries.saturating_add(1), Instant::now() + wait));
    }
}

/// Refreshes what is due; returns the time until the next one is due.
async fn sweep(registry: &Arc<LoginRegistry>, retries: &mut Retries) -> Duration {
    // Do not create a store that has no logins.
    if !registry.has_logins() {
        return SWEEP_INTERVAL;
    }
    let slots = match registry.store.slots().await {
        Ok(slots) => slots,
        Err(error) => {
            tracing::debug!(target: "upstream", %error, "cannot read stored logins");
            return SWEEP_INTERVAL;
        }
    };
    retries.0.retain(|slot, _| slots.contains(slot));
    let (mut due, mut next) = (Vec::new(), SWEEP_INTERVAL);
    for slot in slots {
        let Ok(spec) = registry.spec(&slot.server) else { continue };
        let Some((held, wait)) = refreshable_login(registry, &spec, &slot).await else { continue };
        match wait.max(retries.wait(&slot).unwrap_or_default()) {
            Duration::ZERO => due.push((spec, held)),
            wait => next = next.min(wait),
        }
    }
    let renewals = stream::iter(due).map(|(spec, held)| async move {
        let renewed = refresh(registry, &spec, &held.slot, held.version()).await;
        if let Err(error) = &renewed {
            tracing::warn!(target: "upstream", server = %spec.server, %error, "login refresh failed; will retry");
        }
        let wait = renewed.as_ref().ok().and_then(Option::as_ref).and_then(|held| due_in(registry, held));
        (held.slot, renewed.is_ok(), wait)
    });
    let mut renewals = renewals.buffer_unordered(MAX_CONCURRENT_REFRESHES);
    while let Some((slot, is_renewed, wait)) = renewals.next().await {
        retries.record(slot.clone(), is_renewed);
        let wait = wait.or_else(|| retries.wait(&slot));
        next = next.min(wait.unwrap_or(next));
    }
    next
}

/// Returns a refreshable login and the time until it is due. Announces a lost one.
async fn refreshable_login(
    registry: &LoginRegistry,
    spec: &LoginSpec,
    slot: &Slot,
) -> Option<(StoredLogin, Duration)> {
    let Auth::OAuth(_) = spec.auth else { return None };
    let held = registry.load(slot).await.ok()??;
    match held.tokens.loss_reason(registry.now()) {
        Some(why) => {
            registry.announce_loss(slot, &why);
            return None;
        }
        None => registry.clear_loss(slot),
    }
    // Tokens issued for another URL are of no use here.
    if held.tokens.refresh.is_none() || !held.tokens.is_for(spec.url.as_deref()) {
        return None;
    }
    due_in(registry, &held).map(|wait| (held, wait))
}

fn due_in(registry: &LoginRegistry, held: &StoredLogin) -> Option<Duration> {
    let mut hasher = DefaultHasher::new();
    held.slot.hash(&mut hasher);
    let jitter = i64::try_from(hasher.finish() % MAX_JITTER_SECS).unwrap_or_default();
    let due = held.tokens.refresh_at(registry.refresh_jitter.saturating_add(jitter))?;
    let due = due.max(held.tokens.obtained.saturating_add(MIN_REFRESH_INTERVAL_SECS));
    let wait = due.saturating_sub(registry.now());
    Some(Duration::from_secs(u64::try_from(wait).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_ports::Owner;

    #[test]
    fn what_fails_is_tried_again_ever_more_seldom() {
        let slot = Slot::new(Owner::Shared, "s", "i");
        let mut retries = Retries::default();
        assert_eq!(retries.wait(&slot), None);
        let mut before = Duration::ZERO;
        for _ in 0..5 {
            retries.record(slot.clone(), false);
            let wait = retries.wait(&slot).unwrap();
            assert!(wait > before, "{wait:?}");
            before = wait;
        }
        for _ in 0..100 {
            retries.record(slot.clone(), false);
        }
        assert!(retries.wait(&slot).unwrap() <= MAX_RETRY_DELAY);
        retries.record(slot.clone(), true);
        assert_eq!(retries.wait(&slot), None);
    }
}
