//! First session with octoprox, of a user at a terminal and an agent. `recorded/first_run.txt` contains input and
//! output; the test replays the input and compares the output. `OCTOPROX_RECORD=1` writes a new recording.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests start the binary, read its files and fail where it does"
)]

mod mcp_agent;
mod pty;

use mcp_agent::Agent;
use pty::{ENTER_MARK, QUESTION_END};
use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const RECORDING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recorded/first_run.txt");

/// Secret in a client's file, which must not appear in any output.
const CANARY_KEY: &str = "ghp_canary0123456789abcdefghijklmnopqrst";

const CLAUDE: &str = r#"{
  "numStartups": 7,
  "mcpServers": {
    "github": {"type": "stdio", "command": "github-mcp-server", "args": ["stdio"], "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "KEY"}}
  }
}
"#;

const CURSOR: &str = r#"{
  "mcpServers": {
    "notes": {"command": "mcp-server-memory", "args": [], "env": {"MEMORY_FILE_PATH": "HOME/notes.jsonl"}}
  }
}
"#;

/// Home directory with the files of two clients, and the program of one of their servers.
fn home_with_clients() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let at = home.path();
    std::fs::write(at.join(".claude.json"), CLAUDE.replace("KEY", CANARY_KEY)).unwrap();
    std::fs::create_dir(at.join(".cursor")).unwrap();
    std::fs::write(at.join(".cursor/mcp.json"), CURSOR.replace("HOME", at.to_str().unwrap())).unwrap();
    std::fs::create_dir(at.join("bin")).unwrap();
    let service = |name: &str| {
        std::env::var(name)
            .unwrap_or_else(|_| panic!("{name} is not set: run eval \"$(scripts/services env)\" first"))
    };
    let script = format!("#!/bin/sh\nexec '{}' '{}' \"$@\"\n", service("NODE24"), service("SERVER_MEMORY"));
    let program = at.join("bin/mcp-server-memory");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
    home
}

/// Command as a shell in that home directory would start it.
fn command_in(home: &Path, program: &str) -> Command {
    let mut command = Command::new(program);
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", home.join("bin").display());
    command.current_dir(home).env_clear().env("HOME", home).env("PATH", path).env("LANG", "C.UTF-8");
    command.env("OCTOPROX_STANDALONE", "true");
    command
}

/// Replays one command of the recording, with its input.
fn replay(home: &Path, line: &str, after: &[&str]) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    if let ["agent", file] = words.as_slice() {
        let settings = std::fs::read_to_string(home.join(file)).unwrap();
        let mut agent = Agent::start(&settings, |program| command_in(home, program));
        let requests = after.iter().filter_map(|line| line.strip_prefix("> "));
        let mut shown = String::new();
        for request in requests {
            writeln!(shown, "> {request}\n< {}", agent.request_line(request)).unwrap();
        }
        agent.shutdown();
        return shown;
    }
    let answers = after.iter().filter_map(|line| line.strip_suffix(ENTER_MARK));
    let answers = answers.map(|line| line.rsplit_once(QUESTION_END).unwrap().1.to_owned());
    let mut command = command_in(home, env!("CARGO_BIN_EXE_octoprox"));
    command.args(words.get(1..).unwrap());
    pty::run_on_terminal(command, &answers.collect::<Vec<_>>())
}

#[test]
fn the_first_minutes_are_as_recorded() {
    let (home, recorded) = (home_with_clients(), std::fs::read_to_string(RECORDING).unwrap());
    let lines: Vec<&str> = recorded.lines().collect();
    let begun = Instant::now();
    let mut shown = String::new();
    for part in lines.chunk_by(|_, next| !next.starts_with("$ ")) {
        let (command, after) = part.split_first().unwrap();
        let command = command.strip_prefix("$ ").unwrap();
        write!(shown, "$ {command}\n{}", replay(home.path(), command, after)).unwrap();
    }
    let took = begun.elapsed();
    let shown = shown.replace(home.path().to_str().unwrap(), "~");
    assert!(!shown.contains(CANARY_KEY), "{shown}");
    if std::env::var_os("OCTOPROX_RECORD").is_some() {
        std::fs::write(RECORDING, &shown).unwrap();
    }
    let recorded = std::fs::read_to_string(RECORDING).unwrap();
    assert_eq!(shown, recorded, "\n{}", similar::TextDiff::from_lines(&recorded, &shown).unified_diff());
    assert!(took < Duration::from_secs(120), "{took:?}");
}
