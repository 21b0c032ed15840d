//! Finds a newer program that has replaced the one of this hub, and checks that it can take over.

use super::hub_protocol::PROTOCOL_VERSION;
use super::hub_start::HUB_COMMAND;
use super::program_file::ProgramFile;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// Option of the hub's command that prints the version of its protocol.
pub const VERSION_OPTION: &str = "--handover-version";
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

/// Remembers what it has seen, so that each file is checked once, and not while it is being written.
#[derive(Default)]
pub struct SuccessorCheck {
    last_seen: Option<ProgramFile>,
    refused: Option<ProgramFile>,
}

impl SuccessorCheck {
    /// Returns a program that can take over. Never one that tools could have written: it would run outside their sandbox.
    pub async fn find(&mut self, own: &ProgramFile, writable: &[PathBuf]) -> Option<ProgramFile> {
        let found = own.successor()?;
        let is_stable = self.last_seen.replace(found.clone()).as_ref() == Some(&found);
        if !is_stable || self.refused.as_ref() == Some(&found) {
            return None;
        }
        let path = found.path.canonicalize().ok()?;
        let is_writable = writable.iter().any(|folder| {
            let folder = folder.canonicalize();
            folder.is_ok_and(|folder| path.starts_with(folder))
        });
        if is_writable || !speaks_protocol(&found).await {
            tracing::warn!(program = %path.display(), is_writable, "the program was replaced and cannot take over");
            self.refused = Some(found);
            return None;
        }
        Some(found)
    }
}

async fn speaks_protocol(program: &ProgramFile) -> bool {
    let Ok(opened) = program.open() else { return false };
    let mut command = Command::new(opened.start_path());
    command.args([HUB_COMMAND, VERSION_OPTION]).current_dir(octo_grants::NEUTRAL_DIR);
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(VERSION_TIMEOUT, command.output()).await;
    let printed = output.is_ok_and(|output| {
        output.is_ok_and(|output| output.stdout.trim_ascii() == PROTOCOL_VERSION.to_string().as_bytes())
    });
    drop(opened);
    printed
}
