//! A server of one test.

#![allow(dead_code, reason = "each test uses a part")]

use std::path::PathBuf;
use std::process::{Command, Stdio};

pub fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set: scripts/services install && scripts/services start && eval \"$(scripts/services env)\"")
    })
}

/// A server of one test, removed with the test.
pub struct PostgresCluster {
    pub folder: PathBuf,
    pub port: u16,
}

impl PostgresCluster {
    pub fn start(name: &str) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = PathBuf::from(format!("/tmp/octoprox-sql-{name}-{}", std::process::id()));
        let cluster = Self { folder, port };
        cluster.run_script("init");
        cluster.run_script("start");
        cluster
    }

    /// With TLS, and nothing else over the network.
    pub fn with_tls(self) -> Self {
        self.run_script("secure");
        self.run_script("restart");
        self
    }

    /// Returns the output of the script.
    pub fn run_script(&self, verb: &str) -> String {
        let script = variable("POSTGRES_CLUSTER");
        let mut command = Command::new(script);
        command
            .arg(verb)
            .arg(&self.folder)
            .arg(self.port.to_string())
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{verb}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn admin(&self) -> String {
        let password = std::fs::read_to_string(self.folder.join("password")).unwrap();
        format!("postgres://postgres:{}@127.0.0.1:{}/postgres", password.trim(), self.port)
    }
}

impl Drop for PostgresCluster {
    fn drop(&mut self) {
        let script = variable("POSTGRES_CLUSTER");
        let stopped = Command::new(script).arg("stop").arg(&self.folder).stderr(Stdio::null()).status();
        drop(stopped);
        drop(std::fs::remove_dir_all(&self.folder));
    }
}
