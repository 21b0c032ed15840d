//! Temporary home directory per test, isolated from the user's.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

pub struct TestHome(tempfile::TempDir);

impl TestHome {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file and creates its parent directories.
    pub fn write_with_dirs(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        self.write(name, text);
    }

    pub fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// Exit code, standard output and standard error of a command.
    pub fn run_text(&self, words: &[&str]) -> (Option<i32>, String, String) {
        text_of(self.run(words))
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Background hubs of other tests, and of the user, are elsewhere.
    fn runtime_dir(&self) -> PathBuf {
        let folder = self.path(".run");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        folder
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_octoprox"));
        command.args(words).current_dir(self.0.path()).env_clear().env("HOME", self.0.path());
        command.env("OCTOPROX_STANDALONE", "true").env("XDG_RUNTIME_DIR", self.runtime_dir());
        // Explicit settings file. Project files are tested in `trust_cli.rs`.
        if self.exists("octoprox.yaml") {
            command.env("OCTOPROX_CONFIG", "octoprox.yaml");
        }
        command.stdin(Stdio::null());
        command
    }

    pub fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Standard output of a command, which must succeed.
    pub fn stdout(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn serve(&self, more: &[&str]) -> RunningServer {
        let words: Vec<&str> = ["serve", "--port", "0"].iter().chain(more).copied().collect();
        self.start(self.command(&words))
    }

    pub fn start(&self, mut command: Command) -> RunningServer {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let port =
            line.split("http://").nth(1).and_then(|rest| rest.split(['/', ' ']).next()).unwrap_or_default();
        let port = port.rsplit(':').next().unwrap_or_default().parse();
        let port = port.unwrap_or_else(|_| panic!("it did not start: {line}"));
        RunningServer { child, ready_line: line, port, _stderr: stderr }
    }
}

/// Exit code, standard output and standard error of a command.
pub fn text_of(output: Output) -> (Option<i32>, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Running hub; stopped on drop.
pub struct RunningServer {
    child: Child,
    /// Line that it printed when it was ready.
    pub ready_line: String,
    pub port: u16,
    _stderr: BufReader<std::process::ChildStderr>,
}

impl RunningServer {
    pub fn get(&self, path: &str, token: Option<&str>) -> (u16, String) {
        super::get(self.port, path, token)
    }

    /// Stops it; returns its exit code and its log.
    pub fn stop(mut self) -> (Option<i32>, String) {
        self.send_sigterm();
        let mut log = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut log).unwrap();
        (self.child.wait().unwrap().code(), log)
    }

    fn send_sigterm(&self) {
        let id = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.send_sigterm();
        let _ = self.child.wait();
    }
}
