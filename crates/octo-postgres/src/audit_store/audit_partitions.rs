//! Partitions by month. A record is in that of its time, whatever the clock said.

use crate::value::{Value, typed};
use jiff::Timestamp;
use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use tokio_postgres::Client;

/// Months after the current one whose partitions exist in advance.
const MONTHS_AHEAD: usize = 3;

const FIRST: Month = Month { year: 1970, month: 1 };
const LAST: Month = Month { year: 9999, month: 12 };

/// A month of UTC. The first and the last extend to all times before and after.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Month {
    year: i16,
    month: i8,
}

impl Month {
    /// Of microseconds since 1970.
    pub(crate) fn of(at: i64) -> Self {
        let clamped = if at < 0 { Timestamp::UNIX_EPOCH } else { Timestamp::MAX };
        let date = Timestamp::from_microsecond(at).unwrap_or(clamped).to_zoned(TimeZone::UTC).date();
        Self { year: date.year(), month: date.month() }.clamp(FIRST, LAST)
    }

    fn next(self) -> Self {
        match self.month {
            12 => Self { year: self.year + 1, month: 1 },
            month => Self { month: month + 1, ..self },
        }
    }

    /// The current month and those whose partitions exist in advance.
    pub(crate) fn ahead_of(at: i64) -> Vec<Self> {
        let months = std::iter::successors(Some(Self::of(at)), |month| Some(month.next()));
        months.take(1 + MONTHS_AHEAD).filter(|month| *month <= LAST).collect()
    }

    /// Name of the partition.
    pub(crate) fn table(self) -> String {
        format!("audit_{:04}_{:02}", self.year, self.month)
    }

    /// The first microsecond, and the one after the last.
    fn bounds(self) -> (i64, i64) {
        let first = if self == FIRST { i64::MIN } else { self.start() };
        let beyond = if self == LAST { i64::MAX } else { self.next().start() };
        (first, beyond)
    }

    fn start(self) -> i64 {
        let first: Date = date(self.year, self.month, 1);
        first.to_zoned(TimeZone::UTC).map_or(i64::MAX, |start| start.timestamp().as_microsecond())
    }
}

/// Creates the partitions of [`MonthValues`] that do not exist.
pub(crate) const CREATE: &str = "SELECT audit_create_partition(name, first, beyond)
    FROM unnest($1::text[], $2::int8[], $3::int8[]) AS months (name, first, beyond)";

/// Values for [`CREATE`].
pub(crate) struct MonthValues {
    tables: Vec<String>,
    first: Vec<i64>,
    beyond: Vec<i64>,
}

impl MonthValues {
    pub(crate) fn new(months: &[Month]) -> Self {
        let (first, beyond) = months.iter().map(|month| month.bounds()).unzip();
        Self { tables: months.iter().map(|month| month.table()).collect(), first, beyond }
    }

    pub(crate) fn as_values(&self) -> [&dyn Value; 3] {
        [&self.tables, &self.first, &self.beyond]
    }
}

/// Creates the partitions that do not exist. Needs a transaction with the schema as its path.
pub(crate) async fn create(client: &Client, months: &[Month]) -> Result<(), tokio_postgres::Error> {
    client.query_typed(CREATE, &typed(&MonthValues::new(months).as_values())).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Month {
        Month::of(text.parse::<Timestamp>().unwrap().as_microsecond())
    }

    #[test]
    fn every_time_has_a_month() {
        let december = of("2026-12-31T23:59:59.999999Z");
        assert_eq!(december.table(), "audit_2026_12");
        assert!(of("2027-01-01T00:00:00Z") == december.next());
        assert_eq!(december.bounds().1, december.next().bounds().0);
        for (at, table) in [
            (i64::MIN, "audit_1970_01"),
            (-1, "audit_1970_01"),
            (0, "audit_1970_01"),
            (i64::MAX, "audit_9999_12"),
        ] {
            assert_eq!(Month::of(at).table(), table);
        }
        assert_eq!(Month::of(0).bounds().0, i64::MIN);
        assert_eq!(Month::of(i64::MAX).bounds().1, i64::MAX);
    }

    #[test]
    fn months_ahead_go_on_in_the_next_year() {
        let months = Month::ahead_of("2026-11-05T00:00:00Z".parse::<Timestamp>().unwrap().as_microsecond());
        let tables: Vec<String> = months.into_iter().map(Month::table).collect();
        assert_eq!(tables, ["audit_2026_11", "audit_2026_12", "audit_2027_01", "audit_2027_02"]);
        assert_eq!(Month::ahead_of(i64::MAX).len(), 1);
    }
}
