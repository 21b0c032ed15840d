//! Time between two moments.

use jiff::Zoned;

/// Elapsed time, in days of 24 hours. Every part has the sign of the total, so the parts always add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elapsed {
    pub days: i64,
    pub hours: i64,
    pub minutes: i64,
    pub seconds: i64,
    pub nanoseconds: i64,
    pub total_seconds: i64,
}

/// From start to end; negative if the end is earlier.
pub fn between(start: &Zoned, end: &Zoned) -> Elapsed {
    let elapsed = end.timestamp().duration_since(start.timestamp());
    let total = elapsed.as_secs();
    Elapsed {
        days: total / 86_400,
        hours: total / 3600 % 24,
        minutes: total / 60 % 60,
        seconds: total % 60,
        nanoseconds: i64::from(elapsed.subsec_nanos()),
        total_seconds: total,
    }
}

impl Elapsed {
    fn is_negative(&self) -> bool {
        self.total_seconds < 0 || self.nanoseconds < 0
    }

    /// `2 days, 3 hours and 5 minutes`; with ` before` if the end is earlier.
    pub fn human(&self) -> String {
        let mut parts: Vec<String> = [(self.days, "day"), (self.hours, "hour"), (self.minutes, "minute")]
            .into_iter()
            .filter_map(format_count)
            .collect();
        parts.extend(self.format_seconds());
        let text = match parts.split_last() {
            None => return "0 seconds".to_owned(),
            Some((only, [])) => only.clone(),
            Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        };
        if self.is_negative() { format!("{text} before") } else { text }
    }

    fn format_seconds(&self) -> Option<String> {
        if self.nanoseconds == 0 {
            return format_count((self.seconds, "second"));
        }
        let fraction = format!("{:09}", self.nanoseconds.unsigned_abs());
        Some(format!("{}.{} seconds", self.seconds.unsigned_abs(), fraction.trim_end_matches('0')))
    }
}

fn format_count((count, unit): (i64, &str)) -> Option<String> {
    match count.unsigned_abs() {
        0 => None,
        1 => Some(format!("1 {unit}")),
        many => Some(format!("{many} {unit}s")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences() {
        let rows = [
            ("2026-11-14T22:00Z[UTC]", "2026-11-14T22:00Z[UTC]", [0, 0, 0, 0], 0, "0 seconds"),
            (
                "2026-11-14T22:00Z[UTC]",
                "2026-11-17T01:05Z[UTC]",
                [2, 3, 5, 0],
                183_900,
                "2 days, 3 hours and 5 minutes",
            ),
            ("2026-11-14T22:00Z[UTC]", "2026-11-12T22:00Z[UTC]", [-2, 0, 0, 0], -172_800, "2 days before"),
            ("2026-11-14T22:00Z[UTC]", "2026-11-14T22:00:01Z[UTC]", [0, 0, 0, 1], 1, "1 second"),
            ("2026-11-14T22:00:01Z[UTC]", "2026-11-14T22:00Z[UTC]", [0, 0, 0, -1], -1, "1 second before"),
            ("2026-11-14T22:00Z[UTC]", "2026-11-14T23:01Z[UTC]", [0, 1, 1, 0], 3_660, "1 hour and 1 minute"),
            ("2026-01-01T00:00Z[UTC]", "2027-01-01T00:00Z[UTC]", [365, 0, 0, 0], 31_536_000, "365 days"),
            ("2026-11-14T22:00Z[UTC]", "2026-11-14T22:00:05.25Z[UTC]", [0, 0, 0, 5], 5, "5.25 seconds"),
            ("2026-11-14T22:00:00.5Z[UTC]", "2026-11-14T22:00Z[UTC]", [0, 0, 0, 0], 0, "0.5 seconds before"),
            // Elapsed time, not wall clock time: the night when clocks change is 23 or 25 hours long.
            (
                "2026-03-28T12:00[Europe/Berlin]",
                "2026-03-29T12:00[Europe/Berlin]",
                [0, 23, 0, 0],
                82_800,
                "23 hours",
            ),
            (
                "2026-10-24T12:00[Europe/Berlin]",
                "2026-10-25T12:00[Europe/Berlin]",
                [1, 1, 0, 0],
                90_000,
                "1 day and 1 hour",
            ),
            (
                "2026-11-14T12:00[Asia/Tokyo]",
                "2026-11-14T12:00[America/New_York]",
                [0, 14, 0, 0],
                50_400,
                "14 hours",
            ),
            (
                "-009999-01-03T00:00Z[UTC]",
                "9999-12-30T00:00Z[UTC]",
                [7_304_480, 0, 0, 0],
                631_107_072_000,
                "7304480 days",
            ),
        ];
        for (start, end, [days, hours, minutes, seconds], total, human) in rows {
            let found = between(&start.parse().unwrap(), &end.parse().unwrap());
            assert_eq!(
                [found.days, found.hours, found.minutes, found.seconds],
                [days, hours, minutes, seconds],
                "{start} {end}"
            );
            assert_eq!((found.total_seconds, found.human().as_str()), (total, human), "{start} {end}");
        }
    }
}
