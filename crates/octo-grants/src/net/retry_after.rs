//! `Retry-After`, as seconds or as a date (RFC 9110, 10.2.3).

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use std::time::Duration;

/// Longer pauses are shortened to this.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3600);

/// The current date format, and the two obsolete ones that recipients must accept (RFC 9110, 5.6.7).
const DATE_FORMATS: [&str; 3] =
    ["%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];

/// Returns `None` if the header is missing or invalid. A date is relative to the server's own `Date` if there is one.
pub fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let wanted = text(RETRY_AFTER).filter(|wanted| !wanted.is_empty())?;
    let pause = if wanted.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number too large to parse is too long as well.
        wanted.parse().map_or(MAX_RETRY_AFTER, Duration::from_secs)
    } else {
        let now = text(DATE).and_then(parse_date).unwrap_or(now);
        Duration::try_from(parse_date(wanted)?.duration_since(now)).unwrap_or_default()
    };
    Some(pause.min(MAX_RETRY_AFTER))
}

fn parse_date(text: &str) -> Option<Timestamp> {
    let read = |form: &&str| DateTime::strptime(form, text).ok();
    DATE_FORMATS.iter().find_map(read)?.to_zoned(TimeZone::UTC).ok().map(|date| date.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_all_three_kinds_of_dates_are_read_and_bounded() {
        let now: Timestamp = "1994-11-06T08:49:07Z".parse().unwrap();
        let hour = Some(3600);
        for (wanted, date, seconds) in [
            ("0", "", Some(0)),
            ("120", "", Some(120)),
            (" 7 ", "", Some(7)),
            ("3601", "", hour),
            ("99999999999999999999999", "", hour),
            ("Sun, 06 Nov 1994 08:49:37 GMT", "", Some(30)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", "", Some(30)),
            ("Sun Nov  6 08:49:37 1994", "", Some(30)),
            // A time in the past is no pause; one too far in the future is capped.
            ("Sun, 06 Nov 1994 08:00:00 GMT", "", Some(0)),
            ("Fri, 31 Dec 1999 23:59:59 GMT", "", hour),
            // The server's clock is an hour ahead of ours.
            ("Sun, 06 Nov 1994 09:49:37 GMT", "Sun, 06 Nov 1994 09:49:30 GMT", Some(7)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", "yesterday", Some(30)),
            ("5", "Sun, 06 Nov 1994 09:49:30 GMT", Some(5)),
            ("", "", None),
            ("-1", "", None),
            ("+1", "", None),
            ("1.5", "", None),
            ("soon", "", None),
            ("Mon, 06 Nov 1994 08:49:37 GMT", "", None),
            ("Sun, 31 Feb 1994 08:49:37 GMT", "", None),
            ("Sun, 06 Nov 1994 08:49:37 CET", "", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, wanted.parse().unwrap());
            if !date.is_empty() {
                headers.insert(DATE, date.parse().unwrap());
            }
            let found = retry_after(&headers, now).map(|pause| pause.as_secs());
            assert_eq!(found, seconds, "{wanted:?} {date:?}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
