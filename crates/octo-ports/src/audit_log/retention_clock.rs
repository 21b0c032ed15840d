//! The time by which the age of audit records is judged.
//!
//! A clock that is ahead must not delete the log. So time for which the log has no records counts only once the hub has
//! written records on many days since: until then, it is subtracted from the clock.

use jiff::{SignedDuration, Timestamp};

/// A gap is accepted once there are records of so many days after it.
const EVIDENCE_DAYS: usize = 20;
/// Shorter gaps between records are ordinary.
const MAX_RECORD_GAP: SignedDuration = SignedDuration::from_hours(24);
/// Records that are so far apart are evidence of different days. Less than a day: no longer gap is passed over.
const EVIDENCE_STEP: SignedDuration = SignedDuration::from_hours(23);

/// Times of the last record before a moment, and of the first one from then on.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecordsAround {
    pub before: Option<Timestamp>,
    pub after: Option<Timestamp>,
}

impl RecordsAround {
    /// The records closest to the moment in either of two chains.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        let after = self.after.into_iter().chain(other.after).min();
        Self { before: self.before.max(other.before), after }
    }
}

/// Returns `now` without the time that no record accounts for.
///
/// # Errors
///
/// Those of `around`, which finds the records around a moment.
pub fn trusted_now<E>(
    now: Timestamp,
    mut around: impl FnMut(Timestamp) -> Result<RecordsAround, E>,
) -> Result<Timestamp, E> {
    let (mut unaccounted, mut moment) = (SignedDuration::ZERO, now);
    for _ in 0..EVIDENCE_DAYS {
        let RecordsAround { before: Some(before), after } = around(moment)? else { break };
        let after = after.map_or(now, |after| after.min(now));
        let gap = before.duration_until(after);
        if gap > MAX_RECORD_GAP {
            unaccounted = unaccounted.saturating_add(gap);
        }
        let Ok(earlier) = before.checked_sub(EVIDENCE_STEP) else { break };
        moment = earlier;
    }
    Ok(now.checked_sub(unaccounted).unwrap_or(Timestamp::MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 24 * 60;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + minutes * 60).unwrap()
    }

    /// Trusted minutes, for records at these minutes.
    fn trusted(now: i64, records: &[i64]) -> i64 {
        let trusted = trusted_now(at(now), |moment| {
            let times = || records.iter().map(|record| at(*record));
            let before = times().filter(|time| *time < moment).max();
            Ok::<_, ()>(RecordsAround { before, after: times().filter(|time| *time >= moment).min() })
        });
        at(0).duration_until(trusted.unwrap()).as_secs() / 60
    }

    #[test]
    fn what_no_record_accounts_for_is_subtracted() {
        let daily: Vec<i64> = (0..100).map(|day| day * DAY).collect();
        let and = |more: &[i64]| [&daily, more].concat();
        let last = 99 * DAY;
        for (now, records, expected, why) in [
            (last, daily.clone(), last, "a clock that is right"),
            (last + 600, daily.clone(), last + 600, "a night without calls"),
            (0, vec![], 0, "an empty log"),
            (last + 500 * DAY, daily.clone(), last, "a clock that is ahead at the start"),
            (last + 500 * DAY + 5, and(&[last + 500 * DAY]), last + 5, "and then records calls"),
            (last + 520 * DAY, and(&[last + 500 * DAY, last + 520 * DAY]), last, "and runs rarely"),
            (last + 532 * DAY, and(&[last + 500 * DAY]), last, "and is used again after a month"),
            (last + 20 * DAY, and(&[last + 20 * DAY - 5]), last + 5, "twenty days ahead"),
            (last - 500 * DAY, daily.clone(), last - 500 * DAY, "a clock that is behind"),
            (last + 10, and(&[last - 500 * DAY, last + 5]), last + 10, "one that was behind"),
        ] {
            assert_eq!(trusted(now, &records), expected, "{why}");
        }
    }

    #[test]
    fn a_gap_is_accepted_after_many_days_with_records() {
        let mut records: Vec<i64> = (0..10).map(|day| day * DAY).collect();
        records.extend((100..140).map(|day| day * DAY));
        assert_eq!(trusted(115 * DAY, &records), 115 * DAY - 91 * DAY);
        assert_eq!(trusted(132 * DAY, &records), 132 * DAY);
    }
}
