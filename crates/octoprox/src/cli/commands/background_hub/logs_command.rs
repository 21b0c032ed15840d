//! `octoprox logs`: the logs of the background hubs.

use crate::app_error::AppError;
use crate::attach::hub_control::hub_files;
use crate::attach::log_rotation::previous_log;
use crate::terminal::console;
use clap::Args;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const FOLLOW_INTERVAL: Duration = Duration::from_millis(200);

/// Print the log of the background hub that wrote last.
#[derive(Args)]
#[command(after_help = "Examples:\n  octoprox logs\n  octoprox logs --lines 50 --follow")]
pub struct Logs {
    /// Number of lines from the end
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 200)]
    lines: usize,
    /// Print new lines as they are written
    #[arg(short, long)]
    follow: bool,
}

impl Logs {
    pub fn run(&self) -> Result<(), AppError> {
        let logs = hub_files()?.into_iter().map(|files| files.log);
        let Some(log) = logs.filter_map(|log| Some((modified(&log)?, log))).max().map(|(_, log)| log) else {
            console::print_err("No background hub has written a log.");
            return Ok(());
        };
        let mut text = read_lossy(&previous_log(&log)).unwrap_or_default();
        let mut file = File::open(&log)?;
        let mut current = Vec::new();
        file.read_to_end(&mut current)?;
        text.push_str(&String::from_utf8_lossy(&current));
        let lines: Vec<&str> = text.lines().collect();
        let last = lines.get(lines.len().saturating_sub(self.lines)..).unwrap_or_default();
        if !last.is_empty() {
            console::print(&last.join("\n"))?;
        }
        if self.follow { follow(&log, file) } else { Ok(()) }
    }
}

fn modified(path: &PathBuf) -> Option<SystemTime> {
    std::fs::metadata(path).ok()?.modified().ok()
}

fn read_lossy(path: &Path) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&std::fs::read(path)?).into_owned())
}

/// Prints what is appended, also after the log was rotated.
fn follow(path: &Path, mut file: File) -> Result<(), AppError> {
    loop {
        let mut fresh = Vec::new();
        file.read_to_end(&mut fresh)?;
        io::stdout().write_all(&fresh)?;
        io::stdout().flush()?;
        let inode = |found: io::Result<std::fs::Metadata>| found.ok().map(|metadata| metadata.ino());
        let current = inode(std::fs::metadata(path));
        if current.is_some() && current != inode(file.metadata()) {
            file = File::open(path)?;
            file.seek(SeekFrom::Start(0))?;
        } else {
            std::thread::sleep(FOLLOW_INTERVAL);
        }
    }
}
