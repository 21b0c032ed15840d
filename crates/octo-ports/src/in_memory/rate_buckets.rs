//! Token buckets within this process, by the same arithmetic as in a database.

use super::ready;
use crate::rate_buckets::{CALL_PARTS, TERM_DURATION};
use crate::{RateBucket, RateBuckets, ReturnedSlice, Slice, StoreResult};
use octo_model::BoxFuture;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

pub struct InMemoryRateBuckets {
    epoch: Instant,
    levels: Mutex<HashMap<RateBucket, Level>>,
}

/// Times are in microseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    /// Parts of calls that are not regained yet, at `used_at`.
    used: i64,
    used_at: i64,
    term: i64,
    /// Calls of the slices of this term, and of the one before it, without the first of each.
    leased: i64,
    leased_before: i64,
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

fn duration(micros: i64) -> Duration {
    Duration::from_micros(micros.max(0).cast_unsigned())
}

impl Level {
    /// What slices occupy is not regained while they are valid.
    fn regain(&mut self, now: i64, rate: i64) {
        let ends = [(1, self.leased + self.leased_before), (2, self.leased)]
            .map(|(terms, occupied)| ((self.term + terms) * micros(TERM_DURATION), occupied));
        for (end, occupied) in ends.into_iter().chain([(now, 0)]) {
            let time = end.min(now) - self.used_at;
            if time > 0 {
                let regained = time.min(self.used / rate + 1) * rate;
                self.used = (self.used - regained).max(occupied * CALL_PARTS);
                self.used_at += time;
            }
        }
    }

    fn lease(
        &mut self,
        bucket: &RateBucket,
        wanted: u32,
        returned: Option<ReturnedSlice>,
        now: i64,
    ) -> Slice {
        let (capacity, rate) = (i64::from(bucket.capacity) * CALL_PARTS, i64::from(bucket.per_minute));
        let term = now / micros(TERM_DURATION);
        self.regain(now, rate);
        (self.leased, self.leased_before) = match term - self.term {
            0 => (self.leased, self.leased_before),
            1 => (0, self.leased),
            _ => (0, 0),
        };
        self.term = term;
        if let Some(slice) = returned {
            let leased = match term - slice.term {
                0 => &mut self.leased,
                1 => &mut self.leased_before,
                _ => &mut 0,
            };
            // Not more than was leased.
            let calls = (*leased).min(i64::from(slice.calls) - 1).max(0);
            *leased -= calls;
            self.used -= calls.min(slice.unused.into()) * CALL_PARTS;
        }
        let calls = ((capacity - self.used) / CALL_PARTS).min(i64::from(wanted));
        self.used += calls * CALL_PARTS;
        self.leased += (calls - 1).max(0);
        let missing = self.used + CALL_PARTS - capacity;
        Slice {
            calls: u32::try_from(calls).unwrap_or(0),
            valid_for: duration((term + 2) * micros(TERM_DURATION) - now),
            term,
            retry_after: duration((missing + rate - 1) / rate),
        }
    }
}

impl Default for InMemoryRateBuckets {
    fn default() -> Self {
        Self { epoch: Instant::now(), levels: Mutex::default() }
    }
}

impl RateBuckets for InMemoryRateBuckets {
    fn lease<'a>(
        &'a self,
        bucket: &'a RateBucket,
        wanted: u32,
        returned: Option<ReturnedSlice>,
    ) -> BoxFuture<'a, StoreResult<Slice>> {
        let mut levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        let now = micros(self.epoch.elapsed());
        let level = levels.entry(bucket.clone()).or_default();
        ready(Ok(level.lease(bucket, wanted, returned, now)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_model::Principal;

    const SECOND: i64 = 1_000_000;

    fn bucket(capacity: u32, per_minute: u32) -> RateBucket {
        let principal = Principal::new("default", "ada");
        RateBucket { rule: "rule".to_owned(), principal, capacity, per_minute }
    }

    /// Three hubs, one of which uses its slices late and one of which dies, against one bucket that counts every call.
    #[test]
    fn never_more_than_one_bucket_permits() {
        struct Hub {
            slice: Slice,
            unused: u32,
            until: i64,
        }
        for (capacity, per_minute) in [(60, 60), (10, 6_000), (100, 7), (1, 1), (7, 100_000)] {
            let bucket = bucket(capacity, per_minute);
            let rate = i64::from(per_minute);
            let (mut shared, mut one) = (Level::default(), Level::default());
            let mut hubs: [Option<Hub>; 3] = [None, None, None];
            let (mut now, mut random, mut calls) = (0, 7_u64, 0);
            let mut count = |now| {
                calls += 1;
                assert_eq!(one.lease(&bucket, 1, None, now).calls, 1, "{calls} calls at {now} of {bucket:?}");
            };
            for _ in 0..20_000 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let part = (CALL_PARTS / rate).min(SECOND);
                now += i64::try_from(random % 97).unwrap() * part / 50;
                let at = usize::try_from(random >> 40).unwrap() % hubs.len();
                let hub = &mut hubs[at];
                match hub {
                    Some(hub) if hub.unused > 0 && now < hub.until => {
                        hub.unused -= 1;
                        count(now);
                    }
                    _ => {
                        // A hub that died returns nothing.
                        let returned = hub.take().filter(|_| random % 11 > 0).map(|hub| ReturnedSlice {
                            calls: hub.slice.calls,
                            unused: hub.unused,
                            term: hub.slice.term,
                        });
                        let wanted = u32::try_from(random >> 50).unwrap() % capacity.div_ceil(2) + 1;
                        let slice = shared.lease(&bucket, wanted, returned, now);
                        if slice.calls > 0 {
                            count(now);
                            let until = now + micros(slice.valid_for);
                            *hub = Some(Hub { slice, unused: slice.calls - 1, until });
                        }
                    }
                }
            }
            let permitted = i64::from(capacity) + now * rate / CALL_PARTS;
            assert!(calls > 100.min(permitted / 3), "{calls} of {permitted} of {bucket:?}");
        }
    }

    #[test]
    fn the_time_of_the_next_call_is_exact() {
        let (bucket, mut level) = (bucket(2, 7), Level::default());
        for _ in 0..2 {
            assert_eq!(level.lease(&bucket, 1, None, 0).calls, 1);
        }
        let refused = level.lease(&bucket, 1, None, 6 * SECOND);
        assert_eq!(refused.calls, 0);
        let at = 6 * SECOND + micros(refused.retry_after);
        assert_eq!(level.lease(&bucket, 1, None, at - 1).calls, 0);
        assert_eq!(level.lease(&bucket, 1, None, at).calls, 1);
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        for (capacity, per_minute) in [(u32::MAX, u32::MAX), (u32::MAX, 1), (1, u32::MAX)] {
            let (bucket, mut level) = (bucket(capacity, per_minute), Level::default());
            let year = 366 * 86_400 * SECOND;
            let slice = level.lease(&bucket, u32::MAX, None, year);
            assert_eq!(slice.calls, capacity);
            let returned = ReturnedSlice { calls: slice.calls, unused: slice.calls - 1, term: slice.term };
            assert_eq!(level.lease(&bucket, u32::MAX, Some(returned), year).calls, capacity - 1);
            let late = level.lease(&bucket, u32::MAX, None, 10_000 * year);
            assert_eq!(late.calls, capacity);
        }
    }
}
