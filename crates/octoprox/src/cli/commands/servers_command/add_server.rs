//! `octoprox servers add`.

use crate::app_error::AppError;
use crate::cli::commands::servers_command::servers_file_edit::ServersFileEdit;
use crate::cli::report_error::report_error;
use crate::clients::{SecretExtractor, name_start_dir, required_variables};
use crate::settings::edit::settings_edit;
use crate::settings::{Environment, Flags, check_server, load};
use crate::terminal::console;
use clap::Args;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Add a server to the settings: a program or a URL. All other lines of the file are kept, and a backup is made. Secrets
/// are not written: they are replaced by environment variables.
#[derive(Args)]
#[command(after_help = "Examples:
  octoprox servers add notion --url https://mcp.notion.com/mcp --login
  octoprox servers add files -- npx -y @modelcontextprotocol/server-filesystem /srv
  octoprox servers add github --env GITHUB_TOKEN -- github-mcp-server stdio
  octoprox servers add shop --document https://shop.example/openapi.json")]
pub struct Add {
    /// Name of the server; its tools are listed as NAME__tool
    name: String,
    /// URL of an MCP server over HTTP
    #[arg(long, conflicts_with_all = ["command", "document"])]
    url: Option<String>,
    /// OpenAPI document whose operations become tools: a URL or a file
    #[arg(long, value_name = "URL|FILE", conflicts_with = "command")]
    document: Option<String>,
    /// Environment variable of the program; without a value, it is inherited from octoprox
    #[arg(long, value_name = "NAME[=VALUE]", requires = "command")]
    env: Vec<String>,
    /// Header to send with every request, such as 'Authorization: Bearer ${NAME}'
    #[arg(long, value_name = "NAME: VALUE", conflicts_with = "command")]
    header: Vec<String>,
    /// Use OAuth: users log in with a browser
    #[arg(long, requires = "url")]
    login: bool,
    /// Connect at startup and stay connected
    #[arg(long)]
    always: bool,
    /// Add the server disabled
    #[arg(long)]
    disabled: bool,
    /// File to write to [default: servers.yaml or octoprox.yaml]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Print the changes without writing them
    #[arg(long)]
    dry_run: bool,
    /// Print the result as JSON: {added, file, backup, variables}
    #[arg(long)]
    json: bool,
    /// Program and arguments, after --
    #[arg(last = true, value_name = "COMMAND", required_unless_present_any = ["url", "document"])]
    command: Vec<String>,
}

impl Add {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let world = Environment::current();
        let mut server = self.server_entry()?;
        if let Some(note) = name_start_dir(&mut server, &world) {
            console::print_err(&format!("{}: {note}", self.name));
        }
        SecretExtractor::default().extract(&self.name, &mut server);
        let variables: Vec<String> = required_variables(&server).into_iter().collect();
        check_server(&self.name, &server)?;
        if self.to.is_none() {
            self.require_free_name(flags, &world)?;
        }
        let mut target = ServersFileEdit::for_add(self.to.as_ref(), flags, &world)?;
        if let Err(why) = target.add(&self.name, &server) {
            let there = target.entry(&self.name).is_some();
            let what =
                if there { "remove it first, or choose another name." } else { "add these lines yourself:" };
            let failure = ServersFileEdit::manual_edit_error(&target.path, &why, what);
            if !there {
                let _ = report_error(&failure, self.json);
                console::print(&settings_edit::yaml_snippet(&self.name, &server))?;
                return Err(AppError::silent(1));
            }
            return Err(failure);
        }
        let change = target.into_change();
        if self.dry_run {
            return Ok(console::print(&change.preview(self.json))?);
        }
        let backup = change.write()?;
        self.print_result(&change.path, backup.as_ref(), &variables, &world)
    }

    /// Fails if another settings file defines a server of this name, which the new one would hide.
    fn require_free_name(&self, flags: &Flags, world: &Environment) -> Result<(), AppError> {
        let Ok(loaded) = load(world, flags) else { return Ok(()) };
        if !loaded.settings.servers.contains_key(&self.name) {
            return Ok(());
        }
        let file = loaded.layers.origin(&format!("servers.{}", self.name));
        let name = &self.name;
        Err(AppError::new(format!(
            "{name} already exists in {file}. Remove it first, or choose another name."
        )))
    }

    fn print_result(
        &self,
        path: &Path,
        backup: Option<&PathBuf>,
        variables: &[String],
        world: &Environment,
    ) -> Result<(), AppError> {
        if self.json {
            let told = json!({"added": self.name, "file": path, "backup": backup, "variables": variables});
            return Ok(console::print(&told.to_string())?);
        }
        console::print(&format!("added {} to {}", self.name, path.display()))?;
        if let Some(backup) = backup {
            console::print_err(&format!("Backup: {}.", backup.display()));
        }
        let unset: Vec<&str> =
            variables.iter().map(String::as_str).filter(|name| world.variable(name).is_none()).collect();
        if !unset.is_empty() {
            console::print_err(&format!(
                "Secrets are not written. Set these variables where octoprox is started: {}",
                unset.join(", ")
            ));
        }
        console::print_err(&format!("Next: octoprox servers test {}", self.name));
        Ok(())
    }

    fn server_entry(&self) -> Result<Map<String, Value>, AppError> {
        let mut server = Map::new();
        let mut set = |key: &str, value: Value| server.insert(key.to_owned(), value);
        if let Some((program, args)) = self.command.split_first() {
            set("command", program.as_str().into());
            if !args.is_empty() {
                set("args", args.iter().map(String::as_str).collect());
            }
        }
        if let Some(document) = &self.document {
            set("type", "openapi".into());
            set("document", document.as_str().into());
        }
        if let Some(url) = &self.url {
            set("url", url.as_str().into());
        }
        for (key, given, split) in [("env", &self.env, '='), ("headers", &self.header, ':')] {
            if !given.is_empty() {
                set(key, Value::Object(parse_pairs(given, split)?));
            }
        }
        if self.login {
            set("auth", json!({"type": "oauth2-pkce"}));
        }
        if self.always {
            set("connect", "always".into());
        }
        if self.disabled {
            set("enabled", false.into());
        }
        Ok(server)
    }
}

/// Parses `NAME=VALUE`; `NAME` alone refers to the environment variable of that name.
pub fn parse_pairs(given: &[String], split: char) -> Result<Map<String, Value>, AppError> {
    let pair = |text: &String| match text.split_once(split) {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), Value::from(value.trim())))
        }
        None if split == '=' && !text.trim().is_empty() => {
            Ok((text.clone(), Value::from(format!("${{{text}}}"))))
        }
        _ if split == '=' => {
            Err(AppError::invalid("A variable needs a name. Write it as NAME=VALUE, or NAME to inherit it."))
        }
        _ => Err(AppError::invalid(format!(
            "`{}` is not a header. Write it as 'Name: value'.",
            text.split(' ').next().unwrap_or_default()
        ))),
    };
    given.iter().map(pair).collect()
}
