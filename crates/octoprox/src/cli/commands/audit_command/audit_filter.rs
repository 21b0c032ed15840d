//! Filter for audit records.

use crate::app_error::AppError;
use clap::Args;
use globset::{Glob, GlobMatcher};
use jiff::{Span, Timestamp, civil, tz::TimeZone};
use octo_ports::{AuditRecord, RecordKind};
use std::collections::{BTreeMap, BTreeSet};

/// Filter options. A call matches with both of its records.
#[derive(Args, Default)]
pub struct FilterArgs {
    /// Only calls of tools that match this pattern, such as `fs_*`
    #[arg(long, value_name = "PATTERN")]
    tool: Option<String>,
    /// Only calls of this caller
    #[arg(long, value_name = "NAME")]
    caller: Option<String>,
    /// Only calls with this outcome: ok, failed, denied, invalid, timeout, …
    #[arg(long, value_name = "OUTCOME")]
    outcome: Option<String>,
    /// Only calls since a time: an age such as `1h`, a date, or a timestamp
    #[arg(long, value_name = "WHEN", value_parser = parse_since)]
    since: Option<Timestamp>,
}

impl FilterArgs {
    pub fn matches_all(&self) -> bool {
        self.tool.is_none() && self.caller.is_none() && self.outcome.is_none() && self.since.is_none()
    }
}

/// Filters records; the records of a call stay in order.
pub struct RecordFilter {
    tool: Option<GlobMatcher>,
    caller: Option<String>,
    outcome: Option<String>,
    since: Option<Timestamp>,
    /// Open records of calls whose outcome is not known yet.
    waiting: BTreeMap<String, AuditRecord>,
    /// Calls that matched and have not ended.
    passed: BTreeSet<String>,
}

impl RecordFilter {
    pub fn new(filter: &FilterArgs) -> Result<Self, AppError> {
        let glob = |pattern: &String| {
            let read = Glob::new(pattern).map(|glob| glob.compile_matcher());
            read.map_err(|error| AppError::invalid(format!("--tool: invalid pattern: {error}.")))
        };
        Ok(Self {
            tool: filter.tool.as_ref().map(glob).transpose()?,
            caller: filter.caller.clone(),
            outcome: filter.outcome.clone(),
            since: filter.since,
            waiting: BTreeMap::new(),
            passed: BTreeSet::new(),
        })
    }

    /// Processes a record and returns the records to print.
    pub fn filter(&mut self, record: AuditRecord) -> Vec<AuditRecord> {
        match record.kind {
            RecordKind::Open if !self.matches_opening(&record) => Vec::new(),
            RecordKind::Open if self.outcome.is_some() => {
                self.waiting.insert(record.call.clone(), record);
                Vec::new()
            }
            RecordKind::Open => {
                self.passed.insert(record.call.clone());
                vec![record]
            }
            RecordKind::Close if self.passed.remove(&record.call) => vec![record],
            RecordKind::Close => {
                let opened = self.waiting.remove(&record.call);
                let fits = self.outcome.is_some() && record.outcome == self.outcome;
                opened.filter(|_| fits).map_or_else(Vec::new, |opened| vec![opened, record])
            }
            RecordKind::Prune if self.is_open() => vec![record],
            RecordKind::Prune => Vec::new(),
        }
    }

    fn is_open(&self) -> bool {
        self.tool.is_none() && self.caller.is_none() && self.outcome.is_none() && self.since.is_none()
    }

    fn matches_opening(&self, record: &AuditRecord) -> bool {
        let name = record.name.as_deref().unwrap_or_default();
        self.tool.as_ref().is_none_or(|tool| tool.is_match(name))
            && self.caller.as_ref().is_none_or(|caller| record.subject.as_ref() == Some(caller))
            && self.since.is_none_or(|since| record.at >= since)
    }
}

/// Parses an age, a date (at midnight UTC), or a timestamp.
fn parse_since(text: &str) -> Result<Timestamp, String> {
    let earlier =
        |span: Span| Some(Timestamp::now().to_zoned(TimeZone::UTC).checked_sub(span).ok()?.timestamp());
    let date = |date: civil::Date| Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp());
    let read = text.parse::<Timestamp>().ok();
    let read = read.or_else(|| text.parse::<civil::Date>().ok().and_then(date));
    let read = read.or_else(|| text.parse::<Span>().ok().and_then(earlier));
    read.ok_or_else(|| "use an age such as 1h, a date such as 2027-01-31, or a timestamp".to_owned())
}
