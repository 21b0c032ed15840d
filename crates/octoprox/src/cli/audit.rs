//! `octoprox audit`: who called what, and whether the record is whole.

use super::failure::Failure;
use super::out;
use super::session::settings;
use super::table::harmless_line;
use crate::settings::Flags;
use clap::{Args, Subcommand};
use octo_store::{Anchor, Reader, Record, RecordKind, StoreError, verify};
use std::path::{Path, PathBuf};
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(300);

/// Looks at the record of every call.
#[derive(Args)]
#[command(after_help = "Examples:\n  octoprox audit tail\n  octoprox audit verify")]
pub struct Audit {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Tail(Tail),
    Verify(Verify),
}

/// Prints the newest records: each call opens one before anything runs and closes it when it ends.
#[derive(Args)]
#[command(after_help = "Examples:\n  octoprox audit tail -n 50\n  octoprox audit tail --follow --json")]
struct Tail {
    /// How many records to print
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20)]
    lines: usize,
    /// Go on with what is called from now on
    #[arg(short, long)]
    follow: bool,
    /// Print each record as a line of JSON
    #[arg(long)]
    json: bool,
}

/// Walks the chain of records and names the first that was changed, moved or taken out; then the exit code is 1.
#[derive(Args)]
#[command(after_help = "Examples:\n  octoprox audit verify\n  octoprox audit verify --anchor 42:9f86d0…")]
struct Verify {
    /// A head that was noted before; shows whether records were cut off at the end since
    #[arg(long, value_name = "SEQ:HASH")]
    anchor: Option<Anchor>,
    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,
}

impl Audit {
    pub fn run(&self, flags: &Flags) -> Result<(), Failure> {
        let loaded = settings(flags)?;
        let folder = state_dir(loaded.settings.state_dir.as_ref())?;
        match &self.command {
            Command::Tail(tail) => tail.run(&folder),
            Command::Verify(verify) => verify.run(&folder),
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
        let reader = match Reader::open(folder) {
            Err(StoreError::Missing { .. }) if !self.follow => {
                out::talk("Nothing has been called yet.");
                return Ok(());
            }
            opened => opened?,
        };
        let mut records = reader.tail(self.lines)?;
        let mut last = 0;
        loop {
            for record in &records {
                out::data(&self.line(record)?)?;
                last = record.seq;
            }
            if !self.follow {
                return Ok(());
            }
            if records.is_empty() {
                std::thread::sleep(PAUSE);
            }
            records = reader.after(last)?;
        }
    }

    fn line(&self, record: &Record) -> Result<String, Failure> {
        if self.json {
            return serde_json::to_string(record).map_err(|error| Failure::new(error.to_string()));
        }
        let text = |part: &Option<String>| harmless_line(part.as_deref().unwrap_or_default());
        let call = record.call.get(record.call.len().saturating_sub(8)..).unwrap_or_default();
        let line = match record.kind {
            RecordKind::Open => {
                format!(
                    "open  {call} {} {} {}",
                    text(&record.subject),
                    text(&record.face),
                    text(&record.name)
                )
            }
            RecordKind::Close => {
                let millis = record.millis.unwrap_or_default();
                format!("close {call} {} {millis:.1} ms {}", text(&record.outcome), text(&record.target))
            }
        };
        Ok(harmless_line(&format!("{} {:>6} {}", record.at.strftime("%F %T"), record.seq, line.trim_end())))
    }
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
        Ok(out::data(&format!("ok: {} records, head {}", verified.records, verified.head))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_a_record() {
        let forged = "x\n2026-11-15 18:00:00     99 open  deadbeef admin http fs_delete";
        let tail = Tail { lines: 1, follow: false, json: false };
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
