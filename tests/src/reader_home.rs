//! What a reader of the documentation has before they open a page: clients with servers, settings, and a database with
//! data of others. None of it may differ when the commands of a page have run.

use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

/// Files of a home directory: six servers in five clients, and settings.
const FILES: [(&str, &str); 7] = [
    (
        ".cursor/mcp.json",
        r#"{
  // Mine.
  "mcpServers": {
    "linear": {"url": "https://mcp.linear.app/mcp", "headers": {"Authorization": "Bearer lin_api_0123456789abcdef"}},
    "notes": {"command": "my-notes-server", "args": ["--folder", "notes"]}
  }
}
"#,
    ),
    (".claude.json", r#"{"numStartups": 7, "mcpServers": {"tides": {"command": "my-tides-server"}}}"#),
    (".claude/settings.json", "{\"model\": \"opus\"}\n"),
    (
        ".gemini/settings.json",
        r#"{"theme": "dark", "mcpServers": {"wiki": {"httpUrl": "https://wiki.example/mcp"}}}"#,
    ),
    (".codex/config.toml", "model = \"mine\"\n\n[mcp_servers.maps]\ncommand = \"my-maps-server\"\n"),
    (
        ".config/Code/User/mcp.json",
        r#"{"servers": {"clock": {"type": "stdio", "command": "my-clock-server"}}}"#,
    ),
    (".config/octoprox/octoprox.yaml", "# My settings.\ncalls: {timeout_seconds: 601}\n"),
];

/// Writes the files of the reader.
///
/// # Errors
///
/// If they cannot be written.
pub fn write_reader_files(home: &Path) -> Result<()> {
    for (name, text) in FILES {
        let path = home.join(name);
        std::fs::create_dir_all(path.parent().context("no parent")?)?;
        std::fs::write(path, text)?;
    }
    Ok(())
}

/// Checks that the reader's files are as they were.
///
/// # Errors
///
/// Names a file that differs or is gone.
pub fn check_reader_files(home: &Path) -> Result<()> {
    for (name, text) in FILES {
        let now = std::fs::read_to_string(home.join(name)).with_context(|| format!("~/{name} is gone"))?;
        ensure!(now == text, "~/{name} has changed:\n{now}");
    }
    Ok(())
}

/// A database of the reader, with a table, a schema and a role that belong to others.
pub struct ReaderDatabase {
    server: String,
    name: String,
}

impl ReaderDatabase {
    /// Creates it at the server of a connection URL. `name` must be unique.
    ///
    /// # Errors
    ///
    /// If the server refuses.
    pub fn create(server: &str, name: String) -> Result<Self> {
        let database = Self { server: server.to_owned(), name };
        psql(&database.server, &format!("CREATE DATABASE {}", database.name))?;
        let data = "CREATE TABLE orders AS SELECT 1 AS id; CREATE SCHEMA payroll; CREATE TABLE payroll.people AS SELECT 1 AS id";
        psql(&database.url()?, data)?;
        Ok(database)
    }

    /// Its connection URL.
    ///
    /// # Errors
    ///
    /// If the URL of the server names no database.
    pub fn url(&self) -> Result<String> {
        let (server, _) = self.server.rsplit_once('/').context("a URL without a database")?;
        Ok(format!("{server}/{}", self.name))
    }

    /// Checks that the data of others is there.
    ///
    /// # Errors
    ///
    /// Says what the database answers.
    pub fn check(&self) -> Result<()> {
        let rows = psql(&self.url()?, "SELECT count(*) FROM orders, payroll.people")?;
        ensure!(rows.trim() == "1", "data of others has changed: {rows}");
        Ok(())
    }

    /// Drops the database, and a role that a page created.
    ///
    /// # Errors
    ///
    /// If the server refuses.
    pub fn drop_with_role(self, role: &str) -> Result<()> {
        psql(&self.server, &format!("DROP DATABASE {} WITH (FORCE)", self.name))?;
        psql(&self.server, &format!("DROP ROLE IF EXISTS {role}"))?;
        Ok(())
    }
}

fn psql(url: &str, sql: &str) -> Result<String> {
    let out = Command::new("psql").args(["-qXAt", "-v", "ON_ERROR_STOP=1", url, "-c", sql]).output()?;
    ensure!(out.status.success(), "{sql}: {}", String::from_utf8_lossy(&out.stderr));
    Ok(String::from_utf8(out.stdout)?)
}
