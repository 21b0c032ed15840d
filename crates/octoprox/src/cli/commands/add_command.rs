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
use crate::clients::required_variables;
use crate::packages::{self, InstallOptions, PackagePin, ServersLock};
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
use replaced_entry::Replaced;
use sandbox_choice::SandboxChoice;
use serde_json::{Map, Value, json};
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
    /// Variable that is set already, and whose value the server may have: one that a registry or a bundle asks for
    #[arg(long, value_name = "NAME")]
    use_env: Vec<String>,
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
    /// With --yes: also replace a server that is another one, or of another publisher
    #[arg(long, requires = "update")]
    replace: bool,
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
        let locks = ServersLock::read(&ServersLock::path_beside(&target.path))?;
        let new_lock = candidate.package.as_ref().map(|(_, locked)| locked);
        let replaced = old.map(|old| {
            Replaced::new((old, locks.servers.get(&candidate.name)), (&candidate.entry, new_lock))
        });
        let kept = old.filter(|_| replaced == Some(Replaced::Same));
        if let Some(old) = kept {
            candidate.keep_settings(old, &self.env);
        }
        let question = self.question(&mut candidate, replaced.as_ref(), &target.path);
        let file = target.path;
        check_server(&candidate.name, &candidate.entry)?;
        if self.dry_run || !self.json {
            self.print_card(&candidate)?;
        }
        if self.dry_run {
            return Ok(());
        }
        let is_other = replaced.is_some_and(|replaced| replaced != Replaced::Same);
        if self.yes && is_other && !self.replace {
            return Err(AppError::new(format!(
                "{} in {} is another server, or of another publisher. Nothing was changed. If you mean to replace it, repeat \
                 the command with --replace.",
                candidate.name,
                file.display()
            )));
        }
        self.require_named_variables(&candidate, kept, &world)?;
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

    /// What is asked; the card says what it means.
    fn question(&self, candidate: &mut ServerCandidate, replaced: Option<&Replaced>, file: &Path) -> String {
        let (name, file) = (&candidate.name, file.display());
        let lost = "Its settings are not kept: hosts, directories, variables and all others.";
        let (question, warning) = match replaced {
            None => (format!("Add {name} to {file}?"), None),
            Some(Replaced::Same) => (format!("Update {name} in {file}?"), None),
            Some(Replaced::Other) => (
                format!("Replace {name}, another server, in {file}?"),
                Some(format!("Replaces {name}, another server. {lost}")),
            ),
            Some(Replaced::OtherPublisher(publisher)) => {
                let publisher = publisher.as_deref().unwrap_or("one that was not recorded");
                (
                    format!("Replace {name}, another publisher, in {file}?"),
                    Some(format!("Replaces {name} of another publisher: {publisher}. {lost}")),
                )
            }
        };
        candidate.warnings.extend(warning);
        question
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

    /// A person names the variables whose values a server gets, never a registry or a bundle. One that is set already
    /// could be meant for another server.
    fn require_named_variables(
        &self,
        candidate: &ServerCandidate,
        kept: Option<&Map<String, Value>>,
        world: &Environment,
    ) -> Result<(), AppError> {
        let known = kept.map(required_variables).unwrap_or_default();
        let typed: Vec<&String> =
            self.server.iter().chain(&self.env).chain(&self.args).chain(&self.use_env).collect();
        let is_typed = |name: &String| {
            let (reference, with_default) = (format!("${{{name}}}"), format!("${{{name}:-"));
            typed
                .iter()
                .any(|word| *word == name || word.contains(&reference) || word.contains(&with_default))
        };
        let derived = candidate.derived_variables();
        let unnamed = derived
            .iter()
            .find(|name| !known.contains(*name) && world.variable(name).is_some() && !is_typed(name));
        let Some(name) = unnamed else { return Ok(()) };
        Err(AppError::new(format!(
            "The variable {name} is set already, and {} would get its value. Nothing was added. If you mean that, repeat \
             the command with `--use-env {name}`; else unset it.",
            candidate.name
        )))
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
            (None, []) => {
                return TestServers::of(name).run(flags).inspect_err(|_| {
                    console::print_err(&format!(
                        "{name} stays in {}. Correct it with --update, or run: octoprox servers remove {name}",
                        file.display()
                    ));
                });
            }
            (None, unset) => console::print_err(&format!(
                "Next: set {} where octoprox is started, then run: octoprox servers test {name}",
                unset.join(", ")
            )),
        }
        Ok(())
    }
}
