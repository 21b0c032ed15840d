//! `octoprox audit`: reads, verifies, exports and prunes the audit log.

mod audit_filter;

use crate::app_context::{block_on_current_thread, load_settings};
use crate::app_error::AppError;
use crate::settings::{Flags, state_dir};
use crate::stores::audit_pruner::MAX_CLOCK_LEAD;
use crate::stores::stores;
use crate::terminal::console;
use crate::terminal::text_table::sanitize_line;
use audit_filter::{FilterArgs, RecordFilter};
use clap::{Args, Subcommand};
use jiff::{SignedDuration, Timestamp};
use octo_ports::{
    AuditCursor, AuditReader, AuditRecord, ChainAnchor, RecordKind, Retention, StoreError, StoreResult,
    Verified,
};
use std::collections::VecDeque;
use std::time::Duration;

const FOLLOW_INTERVAL: Duration = Duration::from_millis(300);

/// Read, verify, export and prune the audit log.
#[derive(Args)]
#[command(after_help = "Examples:\n  octoprox audit tail\n  octoprox audit verify")]
pub struct Audit {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Tail(Tail),
    Export(Export),
    Verify(Verify),
    Prune(Prune),
}

/// Print the newest records. Each call has two: one before it runs and one when it ends.
#[derive(Args)]
#[command(after_help = "Examples:
  octoprox audit tail -n 50
  octoprox audit tail --tool 'fs_*' --outcome denied --since 1h
  octoprox audit tail --follow --json")]
struct Tail {
    /// Number of records to print
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20)]
    limit: usize,
    /// Keep printing new records
    #[arg(short, long)]
    follow: bool,
    /// Print each record as a line of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    filter: FilterArgs,
}

/// Print every record as a line of JSON, oldest first.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  octoprox audit export > audit.jsonl\n  octoprox audit export --since 2027-01-01"
)]
struct Export {
    #[command(flatten)]
    filter: FilterArgs,
}

/// Remove old records. The removal is recorded, and the chain still verifies. Export the records first if you need them.
/// `audit.max_records` and `audit.max_days` prune while a hub runs.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  octoprox audit prune --older-than 90d\n  octoprox audit prune --keep-records 1000000"
)]
struct Prune {
    /// Keep this many of the newest records
    #[arg(long, value_name = "COUNT", required_unless_present = "older_than")]
    keep_records: Option<u64>,
    /// Remove records older than this, such as `90d`
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    older_than: Option<Duration>,
    /// Believe the clock, even if it is far ahead of the newest records
    #[arg(long, requires = "older_than")]
    trust_clock: bool,
    /// Print the result as JSON: {pruned}
    #[arg(long)]
    json: bool,
}

/// Verify the hash chain. Report the first record that was changed, moved or removed, and exit with code 1.
#[derive(Args)]
#[command(after_help = "Examples:\n  octoprox audit verify\n  octoprox audit verify --anchor 42:9f86d0…")]
struct Verify {
    /// Head of the chain from an earlier run: detect records that were removed from the end since then
    #[arg(long = "anchor", value_name = "SEQ:HASH")]
    anchors: Vec<ChainAnchor>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Audit {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let loaded = load_settings(flags)?;
        state_dir(loaded.settings.state_dir.as_ref())?;
        let audit = stores(&loaded.settings)?.audit_reader;
        block_on_current_thread(async {
            match &self.command {
                Command::Tail(tail) => tail.run(&*audit).await,
                Command::Export(export) => export.run(&*audit).await,
                Command::Verify(verify) => verify.run(&*audit).await,
                Command::Prune(prune) => prune.run(&*audit).await,
            }
        })
    }
}

impl Tail {
    async fn run(&self, audit: &dyn AuditReader) -> Result<(), AppError> {
        if !self.follow && is_missing(&audit.heads().await) {
            console::print_err("The audit log is empty: no calls yet.");
            return Ok(());
        }
        let mut sieve = RecordFilter::new(&self.filter)?;
        let (mut records, mut cursor) = self.newest(audit, &mut sieve).await?;
        loop {
            for record in &records {
                console::print(&self.line(record)?)?;
            }
            if !self.follow {
                return Ok(());
            }
            let fresh = audit.after(&cursor).await?;
            if fresh.is_empty() {
                tokio::time::sleep(FOLLOW_INTERVAL).await;
            }
            advance(&mut cursor, &fresh);
            records = fresh.into_iter().flat_map(|record| sieve.filter(record)).collect();
        }
    }

    /// Returns the newest matching records, and the position after the newest record.
    async fn newest(
        &self,
        audit: &dyn AuditReader,
        sieve: &mut RecordFilter,
    ) -> Result<(Vec<AuditRecord>, AuditCursor), AppError> {
        if self.filter.matches_all() {
            let mut cursor = AuditCursor::default();
            for head in audit.heads().await? {
                cursor.advance(&head.chain, head.anchor.seq);
            }
            let records = audit.tail(self.limit).await?;
            advance(&mut cursor, &records);
            return Ok((records, cursor));
        }
        let mut newest = VecDeque::new();
        let cursor = for_each_record(audit, |record| {
            newest.extend(sieve.filter(record));
            while newest.len() > self.limit {
                newest.pop_front();
            }
            Ok(())
        })
        .await?;
        Ok((newest.into(), cursor))
    }

    fn line(&self, record: &AuditRecord) -> Result<String, AppError> {
        if self.json {
            return record_json(record);
        }
        let text = |part: &Option<String>| sanitize_line(part.as_deref().unwrap_or_default());
        let call = record.call.get(record.call.len().saturating_sub(8)..).unwrap_or_default();
        let line = match record.kind {
            RecordKind::Open => {
                format!(
                    "open  {call} {} {} {} {}",
                    text(&record.subject),
                    text(&record.frontend),
                    text(&record.name),
                    text(&record.shown)
                )
            }
            RecordKind::Close => {
                let millis = record.millis.unwrap_or_default();
                format!("close {call} {} {millis:.1} ms {}", text(&record.outcome), text(&record.target))
            }
            RecordKind::Prune => format!("prune {call} up to {}", text(&record.target)),
        };
        let chain = match record.chain.as_str() {
            "" => String::new(),
            chain => format!(" {chain}"),
        };
        let at = record.at.strftime("%F %T");
        Ok(sanitize_line(&format!("{at}{chain} {:>6} {}", record.seq, line.trim_end())))
    }
}

impl Export {
    async fn run(&self, audit: &dyn AuditReader) -> Result<(), AppError> {
        let mut sieve = RecordFilter::new(&self.filter)?;
        if is_missing(&audit.heads().await) {
            return Ok(());
        }
        for_each_record(audit, |record| {
            sieve.filter(record).iter().try_for_each(|record| Ok(console::print(&record_json(record)?)?))
        })
        .await
        .map(drop)
    }
}

impl Prune {
    async fn run(&self, audit: &dyn AuditReader) -> Result<(), AppError> {
        let retention = Retention { max_records: self.keep_records, max_age: self.older_than };
        let now = Timestamp::now();
        let is_doubted = !self.trust_clock && self.older_than.is_some() && !is_missing(&audit.heads().await);
        let unaccounted =
            if is_doubted { audit.trusted_now(now).await?.duration_until(now) } else { SignedDuration::ZERO };
        if unaccounted > MAX_CLOCK_LEAD {
            let days = unaccounted.as_hours() / 24;
            return Err(AppError::new(format!(
                "The clock shows {}, and for {days} days before that there are no records, so nothing was removed. \
                 If the clock is right, run the command again with --trust-clock.",
                now.strftime("%F %T UTC")
            )));
        }
        let pruned = audit.prune(retention, now).await?;
        let said = if self.json {
            serde_json::json!({"pruned": pruned}).to_string()
        } else {
            format!("Removed {pruned} records.")
        };
        Ok(console::print(&said)?)
    }
}

/// Returns whether the audit log does not exist yet.
fn is_missing<T>(answer: &StoreResult<T>) -> bool {
    matches!(answer, Err(StoreError::NotFound(_)))
}

fn advance(cursor: &mut AuditCursor, records: &[AuditRecord]) {
    for record in records {
        cursor.advance(&record.chain, record.seq);
    }
}

/// Visits every record, oldest first, and returns the position after the last.
async fn for_each_record(
    audit: &dyn AuditReader,
    mut work: impl FnMut(AuditRecord) -> Result<(), AppError>,
) -> Result<AuditCursor, AppError> {
    let mut cursor = AuditCursor::default();
    loop {
        let records = audit.after(&cursor).await?;
        if records.is_empty() {
            return Ok(cursor);
        }
        advance(&mut cursor, &records);
        records.into_iter().try_for_each(&mut work)?;
    }
}

fn record_json(record: &AuditRecord) -> Result<String, AppError> {
    serde_json::to_string(record).map_err(|error| AppError::new(error.to_string()))
}

/// Parses a duration such as `90d`.
fn parse_age(text: &str) -> Result<Duration, String> {
    let wrong = || "use a duration such as 90d or 12h".to_owned();
    let span: jiff::Span = text.parse().map_err(|_| wrong())?;
    let length = span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong())?;
    length.try_into().map_err(|_| wrong())
}

impl Verify {
    async fn run(&self, audit: &dyn AuditReader) -> Result<(), AppError> {
        let chains = audit.verify(&self.anchors).await?;
        if !self.json {
            console::print_err(
                "The hash chain is intact. Store the head elsewhere and pass it as --anchor next time.",
            );
        }
        for verified in chains {
            let line = if self.json {
                serde_json::to_string(&verified).map_err(|error| AppError::new(error.to_string()))?
            } else {
                verified_line(verified)
            };
            console::print(&line)?;
        }
        Ok(())
    }
}

fn verified_line(verified: Verified) -> String {
    let pruned = verified.pruned.map(|pruned| format!(", pruned up to {pruned}")).unwrap_or_default();
    let head = ChainAnchor { chain: verified.chain, anchor: verified.head };
    sanitize_line(&format!("ok: {} records, head {head}{pruned}", verified.records))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_a_record() {
        let forged = "x\n2026-11-15 18:00:00     99 open  deadbeef admin http fs_delete";
        let tail = Tail { limit: 1, follow: false, json: false, filter: FilterArgs::default() };
        for (subject, name) in [("bob", forged), (forged, "x")] {
            let record = AuditRecord {
                call: "0123456789abcdef".to_owned(),
                subject: Some(subject.to_owned()),
                name: Some(name.to_owned()),
                ..AuditRecord::default()
            };
            let line = tail.line(&record).unwrap();
            assert_eq!(line.lines().count(), 1, "{line}");
        }
    }
}
