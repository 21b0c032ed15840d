//! Buckets take long to regain a call, so that the speed of the machine changes nothing. A backend that one process
//! owns has none.

use super::{Open, race};
use crate::rate_buckets::TERM_DURATION;
use crate::{RateBucket, RateBuckets, ReturnedSlice, Slice, StoreResult};
use octo_model::Principal;
use std::sync::Arc;
use std::time::Duration;

fn bucket(rule: &str, tenant: &str, subject: &str) -> RateBucket {
    let principal = Principal::new(tenant, subject);
    RateBucket { rule: rule.to_owned(), principal, capacity: 10, per_minute: 1 }
}

fn returned(slice: Slice, unused: u32) -> ReturnedSlice {
    ReturnedSlice { calls: slice.calls, unused, term: slice.term }
}

fn buckets(open: &Open) -> Option<Arc<dyn RateBuckets>> {
    open().rate_buckets
}

pub async fn leased_in_slices(open: &Open) -> StoreResult<()> {
    let (Some(one), Some(two)) = (buckets(open), buckets(open)) else { return Ok(()) };
    let ada = bucket("a", "default", "ada");
    let first = one.lease(&ada, 6, None).await?;
    assert_eq!(first.calls, 6);
    assert!(first.valid_for > TERM_DURATION && first.valid_for <= 2 * TERM_DURATION, "{first:?}");
    assert_eq!(two.lease(&ada, 6, None).await?.calls, 4, "what is left");
    let refused = one.lease(&ada, 1, None).await?;
    assert_eq!(refused.calls, 0);
    assert!(refused.retry_after > Duration::from_secs(30) && refused.retry_after <= Duration::from_secs(60));
    for other in [bucket("b", "default", "ada"), bucket("a", "other", "ada"), bucket("a", "default", "bob")] {
        assert_eq!(two.lease(&other, 20, None).await?.calls, 10, "{other:?}");
    }
    Ok(())
}

pub async fn returned_unused(open: &Open) -> StoreResult<()> {
    let (Some(one), Some(two)) = (buckets(open), buckets(open)) else { return Ok(()) };
    let ada = bucket("a", "default", "ada");
    let slice = one.lease(&ada, 8, None).await?;
    let next = one.lease(&ada, 0, Some(returned(slice, 5))).await?;
    assert_eq!(next.calls, 0, "only taken back");
    let rest = two.lease(&ada, 10, None).await?;
    assert_eq!(rest.calls, 7);
    assert_eq!(one.lease(&ada, 10, None).await?.calls, 0);
    for _ in 0..2 {
        two.lease(&ada, 0, Some(returned(rest, 7))).await?;
    }
    assert_eq!(one.lease(&ada, 10, None).await?.calls, 6, "once, and without the first");
    Ok(())
}

/// A slice that may still be used occupies its part of the capacity, so nobody else regains it meanwhile.
pub async fn occupied_while_valid(open: &Open) -> StoreResult<()> {
    let (Some(one), Some(two)) = (buckets(open), buckets(open)) else { return Ok(()) };
    let fast = RateBucket { per_minute: 600_000, ..bucket("a", "default", "ada") };
    let slice = one.lease(&fast, 4, None).await?;
    // All calls could be regained.
    tokio::time::sleep(Duration::from_millis(4)).await;
    let rest = two.lease(&fast, 10, None).await?;
    assert_eq!(rest.calls, 7);
    two.lease(&fast, 0, Some(returned(rest, 6))).await?;
    one.lease(&fast, 0, Some(returned(slice, 0))).await?;
    tokio::time::sleep(Duration::from_millis(4)).await;
    let last = two.lease(&fast, 10, None).await?;
    assert_eq!(last.calls, 10, "what was used is regained");
    tokio::time::sleep(last.valid_for + Duration::from_millis(5)).await;
    assert_eq!(one.lease(&fast, 10, None).await?.calls, 10, "a hub that died occupies nothing");
    Ok(())
}

pub async fn never_leased_twice(open: &Open) -> StoreResult<()> {
    let Some(first) = buckets(open) else { return Ok(()) };
    let hubs = [Some(first), buckets(open), buckets(open), buckets(open)];
    let tasks = hubs.into_iter().flatten().map(|hub| {
        Box::pin(async move {
            let ada = RateBucket { capacity: 100, ..bucket("a", "default", "ada") };
            let (mut sum, mut last) = (0, None);
            for wanted in [5, 3, 11, 2, 7, 1, 9, 4, 6, 8] {
                let slice = hub.lease(&ada, wanted, last).await?;
                // One of each slice is not used.
                let unused = slice.calls.saturating_sub(1).min(1);
                sum += slice.calls - unused;
                last = Some(returned(slice, unused));
            }
            hub.lease(&ada, 0, last).await?;
            Ok(sum)
        }) as octo_model::BoxFuture<'static, StoreResult<u32>>
    });
    let sums = race(tasks).await.into_iter().collect::<StoreResult<Vec<u32>>>()?;
    let (sum, ada) = (sums.iter().sum::<u32>(), bucket("a", "default", "ada"));
    let ada = RateBucket { capacity: 100, ..ada };
    let rest = match buckets(open) {
        Some(hub) => hub.lease(&ada, 100, None).await?.calls,
        None => 0,
    };
    assert_eq!(sum + rest, 100);
    Ok(())
}
