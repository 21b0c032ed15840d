//! `octoprox add`: adds a server by name, package, URL or file, after showing what it is.

mod bundle_entry;
mod registry_search;
mod replaced_entry;
mod sandbox_choice;
mod server_candidate;
mod server_card;
mod server_names;

use crate::app_context::{block_on_current_thread, load_settings};
use crate::app_error::AppError;
use crate::cli::commands::servers_command::{ServersFileEdit, TestServers};
use crate::cli::file_change::FileChange;
use crate::packages::{self, InstallOptions, PackagePin};
use crate::settings::edit::replace_file::lock_folder_of;
use crate::settings::{Environment, Flags, LoadedSettings, Settings, check_server, state_dir};
use crate::stores::stores;
use crate::terminal::console;
use crate::terminal::prompter::Prompter;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use octo_catalogue::Catalogue;
use octo_model::abbreviate;
use registry_search::search_registries;
use replaced_entry::{is_same_server, keep_settings};
use sandbox_choice::SandboxChoice;
use serde_json::{Value, json};
use server_candidate::{CandidateOptions, ServerCandidate};
use std::path::{Path, PathBuf};

/// Add an MCP server by name. Shows first what it is: what runs, who publishes it, which hosts it reaches, what it needs
/// and what its tools do. Packages are installed in exact versions, without install scripts, and run in a sandbox.
#[derive(Args)]
#[command(after_help = "Examples:
  octoprox add github
  octoprox add time --yes
  octoprox add npm:@modelcontextprotocol/server-memory
  octoprox add pypi:mcp-server-git@2026.10.19 --dry-run
  octoprox add npm:tides-mcp --allow-host api.example.com --write ./data
  octoprox add ./tides.mcpb
  octoprox add https://mcp.example.com/mcp
  octoprox add --search calendar")]
pub struct Add {
    /// Name in the catalogue or a registry, npm:NAME, pypi:NAME, oci:NAME@sha256:DIGEST, URL, program, MCP bundle or OpenAPI document
    #[arg(required_unless_present = "search")]
    server: Option<String>,
    /// Search the catalogue and the registries of the settings
    #[arg(long, value_name = "WORDS", conflicts_with = "server")]
    search: Option<String>,
    /// Name of the server in the settings [default: its name in the catalogue]
    #[arg(long = "as", value_name = "NAME")]
    name: Option<String>,
    /// Use the package, even if the publisher has a remote server
    #[arg(long)]
    local: bool,
    /// Program of the package, if it has several
    #[arg(long, value_name = "NAME")]
    command: Option<String>,
    /// Environment variable of the program; without a value, it is inherited from octoprox
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// Host that the program may reach, such as api.example.com or db.example.com:5432
    #[arg(long, value_name = "HOST", value_parser = NonEmptyStringValueParser::new())]
    allow_host: Vec<String>,
    /// Directory that the program may read
    #[arg(long, value_name = "DIR")]
    read: Vec<PathBuf>,
    /// Directory that the program may read and write
    #[arg(long, value_name = "DIR")]
    write: Vec<PathBuf>,
    /// Run the program with all your permissions
    #[arg(long, conflicts_with_all = ["allow_host", "read", "write"])]
    no_sandbox: bool,
    /// Let packages run their install scripts and build from source
    #[arg(long)]
    allow_scripts: bool,
    /// Add a package or URL whose name resembles a server of the catalogue
    #[arg(long)]
    allow_look_alike: bool,
    /// Replace the server of this name: use it to update a package
    #[arg(long)]
    update: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Show the server without adding it
    #[arg(long)]
    dry_run: bool,
    /// File to write to [default: servers.yaml or octoprox.yaml]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Print JSON: the server ({added, file} once it was added), or the servers found
    #[arg(long)]
    json: bool,
    /// Arguments of the program, after --
    #[arg(last = true, value_name = "ARGS")]
    args: Vec<String>,
}

/// Characters of a name in an error.
const MAX_NAME_CHARS: usize = 60;
/// Servers that a search prints, of the catalogue and of registries.
const MAX_FOUND: usize = 20;

impl Add {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let catalogue = Catalogue::shipped().map_err(|error| AppError::new(error.to_string()))?;
        if let Some(words) = &self.search {
            return self.print_found(catalogue, &load_settings(flags)?.settings, words);
        }
        let world = Environment::current();
        let loaded = load_settings(flags)?;
        let state = state_dir(loaded.settings.state_dir.as_ref())?;
        let target = ServersFileEdit::for_add(self.to.as_ref(), flags, &world)?;
        let folder = target.path.parent().unwrap_or(Path::new("/")).to_owned();
        let mut candidate =
            ServerCandidate::find(catalogue, &loaded.settings, &self.options(&loaded, &state, &folder))?;
        if let Some(what) = candidate.look_alike.as_ref().filter(|_| !self.allow_look_alike) {
            return Err(AppError::new(format!(
                "{what} Run `octoprox add {}` for that server, or repeat the command with --allow-look-alike.",
                candidate.look_alike_name.unwrap_or_default()
            )));
        }
        self.require_name(&loaded, &candidate.name)?;
        candidate.resolve_package(&state, self.install_options())?;
        let mut old = target.entry(&candidate.name);
        let mut old = old.as_mut().and_then(Value::as_object_mut);
        if let Some(old) = old.as_mut().filter(|_| self.no_sandbox) {
            old.remove("sandbox");
        }
        let old = old.as_deref();
        let kept = old.filter(|old| is_same_server(old, &candidate.entry));
        if let Some(old) = kept {
            keep_settings(old, &mut candidate.entry, &self.env);
            candidate.find_needs();
        }
        let question = match (old, kept) {
            (Some(_), None) => {
                format!("Replace {}, another server, in {}?", candidate.name, target.path.display())
            }
            (Some(_), Some(_)) => format!("Update {} in {}?", candidate.name, target.path.display()),
            (None, _) => format!("Add {} to {}?", candidate.name, target.path.display()),
        };
        let file = target.path;
        check_server(&candidate.name, &candidate.entry)?;
        if self.dry_run || !self.json {
            self.print_card(&candidate)?;
        }
        if self.dry_run {
            return Ok(());
        }
        if !self.yes && !Prompter::new(false, "add")?.confirm(&question, false)? {
            return Err(AppError::new("Nothing was added."));
        }
        self.install(&state, &candidate, &folder)?;
        if let Some(backup) = self.write(&file, &candidate)?.filter(|_| !self.json) {
            console::print_err(&format!("Backup: {}.", backup.display()));
        }
        self.approve(&loaded, &candidate)?;
        self.print_next(&candidate, &file, flags, &world)
    }

    /// Writes the settings and the lock, as they are by now: another command may have changed them meanwhile.
    fn write(&self, file: &Path, candidate: &ServerCandidate) -> Result<Option<PathBuf>, AppError> {
        let _held = lock_folder_of(file)
            .map_err(|error| AppError::new(format!("{}: {error}. Nothing was changed.", file.display())))?;
        let mut target = ServersFileEdit::open(file.to_owned())?;
        if self.update && target.entry(&candidate.name).is_some() {
            target.remove(&candidate.name).map_err(|why| self.edit_error(&target, &why))?;
        }
        target.add(&candidate.name, &candidate.entry).map_err(|why| self.edit_error(&target, &why))?;
        let change = target.into_change();
        // The lock first: settings without one do not start, a lock without settings has no effect.
        let locked = candidate.package.as_ref().map(|(_, locked)| locked);
        let lock = FileChange::of_lock(&change.path, &candidate.name, locked)?;
        lock.write_generated()?;
        change.write().inspect_err(|_| lock.undo_generated())
    }

    fn options<'a>(
        &'a self,
        loaded: &LoadedSettings,
        state: &'a Path,
        folder: &'a Path,
    ) -> CandidateOptions<'a> {
        CandidateOptions {
            server: self.server.as_deref().unwrap_or_default(),
            name: self.name.as_deref(),
            local: self.local,
            command: self.command.as_deref(),
            args: &self.args,
            env: &self.env,
            sandbox: SandboxChoice {
                enabled: !self.no_sandbox,
                hosts: &self.allow_host,
                read: &self.read,
                write: &self.write,
            },
            workspace: loaded.settings.workspace.clone(),
            state,
            folder,
        }
    }

    fn install_options(&self) -> InstallOptions {
        InstallOptions { scripts: self.allow_scripts, use_cache: true }
    }

    /// Refuses a name that exists, and a chosen one that cannot be used as it is.
    fn require_name(&self, loaded: &LoadedSettings, name: &str) -> Result<(), AppError> {
        if let Some(chosen) = self.name.as_deref().filter(|chosen| *chosen != name) {
            return Err(AppError::invalid(format!(
                "A server cannot be named `{}`. Use `{name}`, or another name.",
                abbreviate(chosen, MAX_NAME_CHARS)
            )));
        }
        if self.update || !loaded.settings.servers.contains_key(name) {
            return Ok(());
        }
        let file = loaded.layers.origin(&format!("servers.{name}"));
        Err(AppError::new(format!(
            "{name} already exists in {file}. Replace it with --update, or choose another name with --as."
        )))
    }

    fn install(&self, state: &Path, candidate: &ServerCandidate, folder: &Path) -> Result<(), AppError> {
        let Some((id, locked)) = &candidate.package else { return Ok(()) };
        if !self.json {
            let more = match locked.package_count().saturating_sub(1) {
                0 => String::new(),
                1 => " and 1 dependency".to_owned(),
                count => format!(" and {count} dependencies"),
            };
            console::print_err(&format!("Installing {id}{more}…"));
        }
        let installed = packages::install(state, locked, folder, self.install_options())?;
        installed.program(id, candidate.command())?;
        Ok(())
    }

    /// The person who ran this command has accepted the package.
    fn approve(&self, loaded: &LoadedSettings, candidate: &ServerCandidate) -> Result<(), AppError> {
        let Some((id, locked)) = &candidate.package else { return Ok(()) };
        let pin = PackagePin {
            server: candidate.name.clone(),
            package: id.to_string(),
            digest: locked.digest.clone(),
        };
        let pins = stores(&loaded.settings)?.pins;
        block_on_current_thread(async { Ok(packages::approve_package(pins.as_ref(), &pin).await?) })
    }

    fn edit_error(&self, target: &ServersFileEdit, why: &str) -> AppError {
        ServersFileEdit::manual_edit_error(&target.path, why, "choose another file with --to.")
    }

    fn print_card(&self, candidate: &ServerCandidate) -> Result<(), AppError> {
        Ok(console::print(&if self.json {
            server_card::card_json(candidate).to_string()
        } else {
            server_card::card_text(candidate)
        })?)
    }

    fn print_found(&self, catalogue: &Catalogue, settings: &Settings, words: &str) -> Result<(), AppError> {
        let listed = search_registries(settings, words)?;
        let mut found = catalogue.search(words, MAX_FOUND);
        found.extend(listed.iter().take(MAX_FOUND).map(|server| (server.name.as_str(), &server.entry)));
        if self.json {
            return Ok(console::print(&server_card::found_json(&found).to_string())?);
        }
        if found.is_empty() {
            return Err(AppError::new(
                "No server found. Add any other with npm:NAME, pypi:NAME or its URL: octoprox add --help",
            ));
        }
        Ok(console::print(&server_card::found_text(&found))?)
    }

    /// Lists the tools if the server can start now; else says what is missing.
    fn print_next(
        &self,
        candidate: &ServerCandidate,
        file: &Path,
        flags: &Flags,
        world: &Environment,
    ) -> Result<(), AppError> {
        if self.json {
            let added = json!({"added": server_card::card_json(candidate), "file": file});
            return Ok(console::print(&added.to_string())?);
        }
        let name = &candidate.name;
        let done = if self.update { format!("updated {name} in") } else { format!("added {name} to") };
        console::print(&format!("{done} {}", file.display()))?;
        if self.to.is_some() {
            let file = file.display();
            console::print_err(&format!("Next: octoprox --servers {file} servers test {name}"));
            return Ok(());
        }
        let unset: Vec<&str> = candidate
            .needs
            .iter()
            .map(String::as_str)
            .filter(|name| world.variable(name).is_none())
            .collect();
        match (candidate.login_command(world), unset.as_slice()) {
            (Some(command), _) => console::print_err(&format!("Next: {command}")),
            // A disabled server stays so.
            (None, []) if candidate.entry.get("enabled") == Some(&Value::Bool(false)) => {}
            (None, []) => return TestServers::of(name).run(flags),
            (None, unset) => console::print_err(&format!(
                "Next: set {} where octoprox is started, then run: octoprox servers test {name}",
                unset.join(", ")
            )),
        }
        Ok(())
    }
}
