//! Rows of rate limits.

use crate::postgres_schema::PostgresSchema;
use octo_model::Principal;
use octo_ports::{RateBucket, ReturnedSlice};
use std::time::Duration;
use tokio::time::{Instant, sleep};

fn bucket(rule: &str, capacity: u32, per_minute: u32) -> RateBucket {
    let principal = Principal::new("default", "ada");
    RateBucket { rule: rule.to_owned(), principal, capacity, per_minute }
}

#[tokio::test]
async fn the_largest_numbers_do_not_overflow() {
    let schema = PostgresSchema::new().await;
    let buckets = schema.stores().rate_buckets.unwrap();
    for (capacity, per_minute) in [(u32::MAX, u32::MAX), (u32::MAX, 1), (1, u32::MAX)] {
        let bucket = bucket(&format!("{capacity} {per_minute}"), capacity, per_minute);
        let slice = buckets.lease(&bucket, u32::MAX, None).await.unwrap();
        assert_eq!(slice.calls, capacity);
        let returned = ReturnedSlice { calls: slice.calls, unused: slice.calls - 1, term: slice.term };
        let again = buckets.lease(&bucket, u32::MAX, Some(returned)).await.unwrap();
        assert!(again.calls >= capacity - 1, "{again:?}");
        schema.run("UPDATE rate_buckets SET used_at = 0, term = 0, leased = 0").await;
        assert_eq!(buckets.lease(&bucket, 0, None).await.unwrap().calls, 0);
    }
}

/// A slice is valid in its term and the next one, and occupies its part until then.
#[tokio::test]
async fn what_slices_occupy_is_regained_after_they_end() {
    let schema = PostgresSchema::new().await;
    let buckets = schema.stores().rate_buckets.unwrap();
    // Regains one call per term.
    let bucket = |rule: &str, terms: i64| bucket(&format!("{rule} {terms}"), 10, 12);
    for (terms, after_slice, after_calls) in
        [(0, 4, 4), (1, 5, 5), (2, 5, 6), (3, 6, 7), (4, 7, 8), (20, 10, 10)]
    {
        let (slice, calls) = (bucket("slice", terms), bucket("calls", terms));
        assert_eq!(buckets.lease(&slice, 6, None).await.unwrap().calls, 6);
        for _ in 0..6 {
            assert_eq!(buckets.lease(&calls, 1, None).await.unwrap().calls, 1);
        }
        let micros = terms * 5_000_000;
        schema
            .run(&format!("UPDATE rate_buckets SET used_at = used_at - {micros}, term = term - {terms}"))
            .await;
        for (bucket, expected) in [(slice, after_slice), (calls, after_calls)] {
            assert_eq!(buckets.lease(&bucket, 10, None).await.unwrap().calls, expected, "{bucket:?}");
        }
    }
}

/// After a failover the clock may be another one.
#[tokio::test]
async fn a_clock_that_was_wrong_delays_nobody_for_long() {
    let schema = PostgresSchema::new().await;
    let buckets = schema.stores().rate_buckets.unwrap();
    let bucket = bucket("a", 10, 600);
    assert_eq!(buckets.lease(&bucket, 10, None).await.unwrap().calls, 10);
    let year = 366_i64 * 86_400 * 1_000_000;
    schema
        .run(&format!("UPDATE rate_buckets SET used_at = used_at + {year}, term = term + {year} / 5000000"))
        .await;
    assert_eq!(buckets.lease(&bucket, 10, None).await.unwrap().calls, 0);
    let deadline = Instant::now() + Duration::from_secs(10);
    while buckets.lease(&bucket, 10, None).await.unwrap().calls == 0 {
        assert!(Instant::now() < deadline);
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn full_buckets_are_removed() {
    let schema = PostgresSchema::new().await;
    for (rule, per_minute) in [("slow", 1), ("fast", 6_000)] {
        schema.stores().rate_buckets.unwrap().lease(&bucket(rule, 10, per_minute), 10, None).await.unwrap();
    }
    // A minute ago, when the slow one could regain one call.
    schema.run("UPDATE rate_buckets SET used_at = used_at - 60000000, term = term - 12").await;
    // The first lease of a process removes.
    schema.stores().rate_buckets.unwrap().lease(&bucket("other", 10, 1), 1, None).await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while schema.count("SELECT count(*) FROM rate_buckets WHERE rule = 'fast'").await > 0 {
        assert!(Instant::now() < deadline);
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(schema.count("SELECT count(*) FROM rate_buckets WHERE rule = 'slow'").await, 1);
    let slow = schema.stores().rate_buckets.unwrap().lease(&bucket("slow", 10, 1), 10, None).await.unwrap();
    assert_eq!(slow.calls, 1);
}
