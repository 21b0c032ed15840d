//! `octoprox audit`: who called what, and whether the record is whole.

mod filter;

use super::failure::Failure;
use super::out;
use super::session::settings;
use super::table::harmless_line;
use crate::settings::Flags;
use clap::{Args, Subcommand};
use filter::{Filter, RecordFilter};
use jiff::Timestamp;
use octo_store::{Anchor, AuditReader, Record, RecordKind, Retention, StoreError, prune, verify};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(300);

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
    lines: usize,
    /// Keep printing new records
    #[arg(short, long)]
    follow: bool,
    /// Print each record as a line of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    filter: Filter,
}

/// Print every record as a line of JSON, oldest first.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  octoprox audit export > audit.jsonl\n  octoprox audit export --since 2027-01-01"
)]
struct Export {
    #[command(flatten)]
    filter: Filter,
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
    #[arg(long, value_name = "AGE", value_parser = age)]
    older_than: Option<Duration>,
    /// Print the result as JSON: {pruned}
    #[arg(long)]
    json: bool,
}

/// Verify the hash chain. Report the first record that was changed, moved or removed, and exit with code 1.
#[derive(Args)]
#[command(after_help = "Examples:\n  octoprox audit verify\n  octoprox audit verify --anchor 42:9f86d0…")]
struct Verify {
    /// Head of the chain from an earlier run: detect records that were removed from the end since then
    #[arg(long, value_name = "SEQ:HASH")]
    anchor: Option<Anchor>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Audit {
    pub fn run(&self, flags: &Flags) -> Result<(), Failure> {
        let loaded = settings(flags)?;
        let folder = state_dir(loaded.settings.state_dir.as_ref())?;
        match &self.command {
            Command::Tail(tail) => tail.run(&folder),
            Command::Export(export) => export.run(&folder),
            Command::Verify(verify) => verify.run(&folder),
            Command::Prune(prune) => prune.run(&folder),
        }
    }
}

/// The folder of the hub's own data.
pub fn state_dir(known: Option<&PathBuf>) -> Result<PathBuf, Failure> {
    known.cloned().ok_or_else(|| {
        Failure::invalid("state_dir: there is no home folder to keep data in. Set OCTOPROX_STATE_DIR.")
    })
}

impl Tail {
    fn run(&self, folder: &Path) -> Result<(), Failure> {
        let reader = match AuditReader::open(folder) {
            Err(StoreError::Missing { .. }) if !self.follow => {
                out::talk("Nothing has been called yet.");
                return Ok(());
            }
            opened => opened?,
        };
        let mut sieve = RecordFilter::new(&self.filter)?;
        let (mut records, mut last) = self.newest(&reader, &mut sieve)?;
        loop {
            for record in &records {
                out::data(&self.line(record)?)?;
            }
            if !self.follow {
                return Ok(());
            }
            let fresh = reader.after(last)?;
            match fresh.last() {
                Some(newest) => last = newest.seq,
                None => std::thread::sleep(PAUSE),
            }
            records = fresh.into_iter().flat_map(|record| sieve.pass(record)).collect();
        }
    }

    /// The newest records that pass, and the number of the newest of all.
    fn newest(&self, reader: &AuditReader, sieve: &mut RecordFilter) -> Result<(Vec<Record>, u64), Failure> {
        if self.filter.is_open() {
            let records = reader.tail(self.lines)?;
            let last = records.last().map_or(0, |record| record.seq);
            return Ok((records, last));
        }
        let (mut newest, mut last) = (VecDeque::new(), 0);
        each(reader, |record| {
            last = record.seq;
            newest.extend(sieve.pass(record));
            while newest.len() > self.lines {
                newest.pop_front();
            }
            Ok(())
        })?;
        Ok((newest.into(), last))
    }

    fn line(&self, record: &Record) -> Result<String, Failure> {
        if self.json {
            return json(record);
        }
        let text = |part: &Option<String>| harmless_line(part.as_deref().unwrap_or_default());
        let call = record.call.get(record.call.len().saturating_sub(8)..).unwrap_or_default();
        let line = match record.kind {
            RecordKind::Open => {
                format!(
                    "open  {call} {} {} {} {}",
                    text(&record.subject),
                    text(&record.face),
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
        Ok(harmless_line(&format!("{} {:>6} {}", record.at.strftime("%F %T"), record.seq, line.trim_end())))
    }
}

impl Export {
    fn run(&self, folder: &Path) -> Result<(), Failure> {
        let mut sieve = RecordFilter::new(&self.filter)?;
        let reader = match AuditReader::open(folder) {
            Err(StoreError::Missing { .. }) => return Ok(()),
            opened => opened?,
        };
        each(&reader, |record| {
            sieve.pass(record).iter().try_for_each(|record| Ok(out::data(&json(record)?)?))
        })
    }
}

impl Prune {
    fn run(&self, folder: &Path) -> Result<(), Failure> {
        let retention = Retention { max_records: self.keep_records, max_age: self.older_than };
        let pruned = prune(folder, retention, Timestamp::now())?;
        let said = if self.json {
            serde_json::json!({"pruned": pruned}).to_string()
        } else {
            format!("{pruned} records were taken out.")
        };
        Ok(out::data(&said)?)
    }
}

/// Every record, oldest first.
fn each(reader: &AuditReader, mut work: impl FnMut(Record) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut last = 0;
    loop {
        let records = reader.after(last)?;
        let Some(newest) = records.last() else { return Ok(()) };
        last = newest.seq;
        records.into_iter().try_for_each(&mut work)?;
    }
}

fn json(record: &Record) -> Result<String, Failure> {
    serde_json::to_string(record).map_err(|error| Failure::new(error.to_string()))
}

/// A length of time such as `90d`.
fn age(text: &str) -> Result<Duration, String> {
    let wrong = || "write a length of time such as 90d or 12h".to_owned();
    let span: jiff::Span = text.parse().map_err(|_| wrong())?;
    let length = span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong())?;
    length.try_into().map_err(|_| wrong())
}

impl Verify {
    fn run(&self, folder: &Path) -> Result<(), Failure> {
        let verified = verify(folder, self.anchor)?;
        if self.json {
            let text = serde_json::to_string(&verified).map_err(|error| Failure::new(error.to_string()))?;
            return Ok(out::data(&text)?);
        }
        out::talk(
            "Every record follows from the one before. Note the head elsewhere and give it as --anchor next time.",
        );
        let pruned = verified.pruned.map(|pruned| format!(", pruned up to {pruned}")).unwrap_or_default();
        Ok(out::data(&format!("ok: {} records, head {}{pruned}", verified.records, verified.head))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_a_record() {
        let forged = "x\n2026-11-15 18:00:00     99 open  deadbeef admin http fs_delete";
        let tail = Tail { lines: 1, follow: false, json: false, filter: Filter::default() };
        for (subject, name) in [("bob", forged), (forged, "x")] {
            let record = Record {
                call: "0123456789abcdef".to_owned(),
                subject: Some(subject.to_owned()),
                name: Some(name.to_owned()),
                ..Record::default()
            };
            let line = tail.line(&record).unwrap();
            assert_eq!(line.lines().count(), 1, "{line}");
        }
    }
}
