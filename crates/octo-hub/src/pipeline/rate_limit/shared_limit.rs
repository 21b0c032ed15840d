//! A limit that holds across hubs. Calls are taken from slices of shared buckets; only a call without a slice asks for one.

use super::bucket_outage::BucketOutage;
use super::leased_slice::LeasedSlice;
use moka::future::Cache;
use octo_model::Principal;
use octo_ports::{Port, RateBucket, RateBuckets, ReturnedSlice, Slice, StoreError, StoreResult};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::OwnedMutexGuard;
use tokio::time::{sleep_until, timeout};

/// How long calls wait for a slice before the limit holds for this hub alone.
const LEASE_TIMEOUT: Duration = Duration::from_secs(2);
/// Slices that are forgotten: those of callers who have not called for so long, and beyond so many.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);
const MAX_SLICES: u64 = 100_000;

/// The buckets of all limits of a hub.
pub(crate) struct SharedBuckets {
    store: Arc<dyn RateBuckets>,
    outage: BucketOutage,
}

pub(super) struct SharedLimit {
    buckets: Arc<SharedBuckets>,
    /// Identity of the rule, the same at all hubs.
    rule: String,
    capacity: u32,
    per_minute: u32,
    slices: Cache<Principal, Arc<CallerSlice>>,
}

struct CallerSlice {
    bucket: RateBucket,
    slice: Mutex<LeasedSlice>,
    /// Held while a slice is requested: calls that need one share the request.
    request: Arc<tokio::sync::Mutex<()>>,
    waiting: AtomicU32,
}

/// The decision about a call; an error is the time to wait. `None` if the buckets cannot be reached.
type Decision = Option<Result<(), Duration>>;

impl SharedBuckets {
    pub(crate) fn new(store: Arc<dyn RateBuckets>) -> Self {
        Self { store, outage: BucketOutage::default() }
    }

    async fn lease(
        &self,
        bucket: &RateBucket,
        wanted: u32,
        returned: Option<ReturnedSlice>,
    ) -> StoreResult<Slice> {
        let lease = timeout(LEASE_TIMEOUT, self.store.lease(bucket, wanted, returned)).await;
        lease.unwrap_or_else(|_| Err(StoreError::unavailable(Port::RateBuckets, "no answer in time")))
    }
}

impl CallerSlice {
    fn slice(&self) -> MutexGuard<'_, LeasedSlice> {
        self.slice.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedLimit {
    pub(super) fn new(buckets: &Arc<SharedBuckets>, rule: String, capacity: u32, per_minute: u32) -> Self {
        let slices = Cache::builder().time_to_idle(IDLE_TIMEOUT).max_capacity(MAX_SLICES).build();
        Self { buckets: Arc::clone(buckets), rule, capacity, per_minute, slices }
    }

    pub(super) async fn check(&self, principal: &Principal) -> Decision {
        let caller = self.caller_slice(principal).await;
        let taken = caller.slice().take(Instant::now());
        if taken.is_some() {
            return taken;
        }
        if self.buckets.outage.is_on(Instant::now()) {
            return None;
        }
        caller.waiting.fetch_add(1, Ordering::Relaxed);
        let waiter = Waiter(&caller.waiting);
        let request = Arc::clone(&caller.request).lock_owned().await;
        let taken = caller.slice().take(Instant::now());
        if taken.is_some() || !self.buckets.outage.may_try(Instant::now()) {
            return taken;
        }
        // A call that is cancelled must not lose what others wait for.
        let leased = tokio::spawn(lease_slice(Arc::clone(&self.buckets), Arc::clone(&caller), request)).await;
        drop(waiter);
        leased.ok().flatten()
    }

    async fn caller_slice(&self, principal: &Principal) -> Arc<CallerSlice> {
        if let Some(known) = self.slices.get(principal).await {
            return known;
        }
        let new = async {
            let bucket = RateBucket {
                rule: self.rule.clone(),
                principal: principal.clone(),
                capacity: self.capacity,
                per_minute: self.per_minute,
            };
            Arc::new(CallerSlice {
                bucket,
                slice: Mutex::new(LeasedSlice::new(self.capacity, Instant::now())),
                request: Arc::default(),
                waiting: AtomicU32::new(0),
            })
        };
        self.slices.get_with_by_ref(principal, new).await
    }
}

/// A call that waits for a slice.
struct Waiter<'a>(&'a AtomicU32);

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn lease_slice(
    buckets: Arc<SharedBuckets>,
    caller: Arc<CallerSlice>,
    request: OwnedMutexGuard<()>,
) -> Decision {
    let requested_at = Instant::now();
    let (wanted, returned) = {
        let mut slice = caller.slice();
        let wanted = slice.next_size(requested_at, caller.waiting.load(Ordering::Relaxed));
        (wanted, slice.end())
    };
    let leased = match buckets.lease(&caller.bucket, wanted, returned).await {
        Ok(leased) => leased,
        Err(error) => {
            buckets.outage.failed(&error, Instant::now());
            return None;
        }
    };
    buckets.outage.succeeded();
    let mut slice = caller.slice();
    let decision = slice.start(leased, requested_at);
    if slice.return_time().is_some() && !slice.is_watched {
        slice.is_watched = true;
        tokio::spawn(return_unused(buckets, Arc::clone(&caller)));
    }
    drop((slice, request));
    Some(decision)
}

/// Returns what is left of a slice that can no longer be used.
async fn return_unused(buckets: Arc<SharedBuckets>, caller: Arc<CallerSlice>) {
    loop {
        let until = {
            let mut slice = caller.slice();
            let until = slice.return_time();
            slice.is_watched = until.is_some();
            until
        };
        let Some(until) = until else { return };
        sleep_until(until.into()).await;
        let _request = caller.request.lock().await;
        let returned = caller.slice().end_if_old(Instant::now());
        // If it fails, the calls are regained in time.
        if returned.is_some() && buckets.lease(&caller.bucket, 0, returned).await.is_err() {
            tracing::debug!("a slice of a rate limit could not be returned");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_model::BoxFuture;
    use octo_ports::in_memory::InMemoryRateBuckets;
    use std::sync::atomic::AtomicBool;

    /// Buckets that count requests and can be out of reach.
    #[derive(Default)]
    struct TestBuckets {
        store: Arc<InMemoryRateBuckets>,
        requests: AtomicU32,
        is_down: AtomicBool,
    }

    impl RateBuckets for TestBuckets {
        fn lease<'a>(
            &'a self,
            bucket: &'a RateBucket,
            wanted: u32,
            returned: Option<ReturnedSlice>,
        ) -> BoxFuture<'a, StoreResult<Slice>> {
            Box::pin(async move {
                self.requests.fetch_add(1, Ordering::Relaxed);
                // Others come to wait meanwhile.
                tokio::time::sleep(Duration::from_millis(20)).await;
                if self.is_down.load(Ordering::Relaxed) {
                    return Err(StoreError::unavailable(Port::RateBuckets, "down"));
                }
                self.store.lease(bucket, wanted, returned).await
            })
        }
    }

    fn ada() -> Principal {
        Principal::new("default", "ada")
    }

    /// A hub with a limit that regains one call per minute.
    fn limit(store: &Arc<TestBuckets>, capacity: u32) -> Arc<SharedLimit> {
        let buckets = Arc::new(SharedBuckets::new(Arc::clone(store) as _));
        Arc::new(SharedLimit::new(&buckets, "rule".to_owned(), capacity, 1))
    }

    async fn allowed(hub: &SharedLimit, calls: u32) -> u32 {
        let mut allowed = 0;
        for _ in 0..calls {
            allowed += u32::from(hub.check(&ada()).await == Some(Ok(())));
        }
        allowed
    }

    #[tokio::test]
    async fn two_hubs_share_a_limit_and_most_calls_make_no_request() {
        let store = Arc::new(TestBuckets::default());
        let (one, two) = (limit(&store, 100), limit(&store, 100));
        assert_eq!(allowed(&one, 30).await, 30);
        assert_eq!(allowed(&two, 1).await, 1);
        // The other hub has nine more.
        assert_eq!(allowed(&one, 100).await, 60);
        assert_eq!(allowed(&two, 100).await, 9);
        assert!(store.requests.load(Ordering::Relaxed) <= 9);
        let Some(Err(wait)) = one.check(&ada()).await else { panic!("allowed") };
        assert!(wait > Duration::from_secs(50) && wait <= Duration::from_secs(60));
        let before = store.requests.load(Ordering::Relaxed);
        assert_eq!(allowed(&one, 1_000).await, 0);
        assert_eq!(
            store.requests.load(Ordering::Relaxed),
            before,
            "a refusal holds until a call is regained"
        );
        let bob = Principal::new("default", "bob");
        assert_eq!(one.check(&bob).await, Some(Ok(())));
    }

    #[tokio::test]
    async fn calls_at_once_share_a_request() {
        let store = Arc::new(TestBuckets::default());
        let hub = limit(&store, 50);
        let checks = (0..80).map(|_| {
            let hub = Arc::clone(&hub);
            tokio::spawn(async move { hub.check(&ada()).await == Some(Ok(())) })
        });
        let checks: Vec<_> = checks.collect();
        let mut allowed = 0;
        for check in checks {
            allowed += u32::from(check.await.unwrap());
        }
        assert_eq!(allowed, 50);
        // The first one does not know yet how many wait.
        assert!(store.requests.load(Ordering::Relaxed) <= 3);
    }

    #[tokio::test]
    async fn a_cancelled_call_takes_nothing_from_others() {
        let store = Arc::new(TestBuckets::default());
        let hub = limit(&store, 20);
        let check = timeout(Duration::from_millis(1), hub.check(&ada())).await;
        assert!(check.is_err(), "cancelled while its request is on the way");
        assert_eq!(allowed(&hub, 30).await, 19);
    }

    #[tokio::test]
    async fn an_outage_leaves_the_decision_to_the_hub_and_ends_by_itself() {
        let store = Arc::new(TestBuckets::default());
        let hub = limit(&store, 100);
        assert_eq!(hub.check(&ada()).await, Some(Ok(())));
        store.is_down.store(true, Ordering::Relaxed);
        assert_eq!(allowed(&hub, 9).await, 9, "the slice is still there");
        for _ in 0..50 {
            assert_eq!(hub.check(&ada()).await, None);
        }
        assert_eq!(store.requests.load(Ordering::Relaxed), 2, "not for every call");
        store.is_down.store(false, Ordering::Relaxed);
        let deadline = Instant::now() + Duration::from_secs(10);
        while hub.check(&ada()).await.is_none() {
            assert!(Instant::now() < deadline);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    #[tokio::test]
    async fn what_is_not_used_is_returned() {
        let store = Arc::new(TestBuckets::default());
        let (one, two) = (limit(&store, 100), limit(&store, 100));
        assert_eq!(one.check(&ada()).await, Some(Ok(())));
        let bucket = one.caller_slice(&ada()).await.bucket.clone();
        let free = async || {
            let slice = store.store.lease(&bucket, 100, None).await.unwrap();
            let returned = ReturnedSlice { calls: slice.calls, unused: slice.calls - 1, term: slice.term };
            store.store.lease(&bucket, 0, Some(returned)).await.unwrap();
            slice.calls
        };
        assert_eq!(free().await, 90);
        let deadline = Instant::now() + Duration::from_secs(20);
        // Each look takes one call.
        let mut looks = 1;
        while free().await < 99 - looks {
            looks += 1;
            assert!(Instant::now() < deadline && looks < 60);
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        assert!(allowed(&two, 100).await >= 98 - looks);
    }
}
