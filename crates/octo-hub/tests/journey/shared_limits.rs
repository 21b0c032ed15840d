//! Limits that hubs share.

use crate::hub_fixture::HubFixture;
use crate::upstream;
use octo_hub::LimitRule;
use octo_model::{BoxFuture, Caller, Kind, Principal};
use octo_ports::{Port, RateBucket, RateBuckets, ReturnedSlice, Slice, StoreError, StoreResult, in_memory};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

struct UnreachableBuckets;

impl RateBuckets for UnreachableBuckets {
    fn lease<'a>(
        &'a self,
        _: &'a RateBucket,
        _: u32,
        _: Option<ReturnedSlice>,
    ) -> BoxFuture<'a, StoreResult<Slice>> {
        Box::pin(async { Err(StoreError::unavailable(Port::RateBuckets, "down")) })
    }
}

fn rule(per_minute: u32) -> LimitRule {
    LimitRule { tools: vec!["up__*".into()], per_minute: per_minute.try_into().unwrap(), burst: None }
}

fn hub(buckets: &Arc<dyn RateBuckets>, limits: Vec<LimitRule>) -> HubFixture {
    HubFixture::new(vec![upstream(&["do"])], |parts| {
        parts.limits = limits;
        parts.rate_buckets = Some(Arc::clone(buckets));
    })
}

async fn is_allowed(hub: &HubFixture, tenant: &str) -> bool {
    let mut request = HubFixture::request("up__do", json!({}));
    request.caller = Arc::new(Caller::from(Principal::new(tenant, "ada")));
    hub.call_request(request).await.outcome.is_ok()
}

#[tokio::test]
async fn hubs_with_the_same_rule_count_together_per_caller() {
    let buckets: Arc<dyn RateBuckets> = in_memory::rate_buckets();
    let (one, two) = (hub(&buckets, vec![rule(4)]), hub(&buckets, vec![rule(4)]));
    for (hub, tenant, expected) in [
        (&one, "a", true),
        (&two, "a", true),
        (&one, "a", true),
        (&two, "a", true),
        (&one, "a", false),
        (&two, "a", false),
        (&two, "b", true),
        (&hub(&buckets, vec![rule(5)]), "a", true),
    ] {
        assert_eq!(is_allowed(hub, tenant).await, expected, "{tenant}");
    }
    let error = one.call_request({
        let mut request = HubFixture::request("up__do", json!({}));
        request.caller = Arc::new(Caller::from(Principal::new("a", "ada")));
        request
    });
    let error = error.await.outcome.unwrap_err();
    assert_eq!((error.kind, &*error.message), (Kind::RateLimited, "Rate limit exceeded for up__do."));
    let wait = error.retry_after.unwrap();
    assert!(wait > Duration::from_secs(5) && wait <= Duration::from_secs(15), "{wait:?}");
    assert_eq!(error.hint.unwrap(), format!("Try again in {} s.", wait.as_secs_f64().ceil()));
}

/// As without shared buckets: each one is passed.
#[tokio::test]
async fn equal_rules_count_separately() {
    let buckets: Arc<dyn RateBuckets> = in_memory::rate_buckets();
    let hub = hub(&buckets, vec![rule(3), rule(3)]);
    for expected in [true, true, true, false] {
        assert_eq!(is_allowed(&hub, "a").await, expected);
    }
}

#[tokio::test]
async fn without_its_buckets_each_hub_enforces_the_whole_limit() {
    let buckets: Arc<dyn RateBuckets> = Arc::new(UnreachableBuckets);
    for _ in 0..2 {
        let hub = hub(&buckets, vec![rule(3)]);
        for expected in [true, true, true, false] {
            assert_eq!(is_allowed(&hub, "a").await, expected);
        }
    }
}
