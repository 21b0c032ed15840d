//! `octoprox servers install`: installs the packages that `servers.lock` names.

use crate::app_context::load_settings;
use crate::app_error::AppError;
use crate::packages::{InstallOptions, LockedPackage, ServersLock, install};
use crate::settings::{Flags, LoadedSettings, Server, SettingOrigin, state_dir};
use crate::terminal::console;
use clap::Args;
use octo_model::ToolError;
use serde_json::json;
use std::path::Path;

/// Install the packages of servers, in the versions and with the digests of servers.lock. Use it on another machine, or in
/// the build of a container image.
#[derive(Args)]
#[command(after_help = "Examples:\n  octoprox servers install\n  octoprox servers install time")]
pub struct Install {
    /// Servers to install [default: all with a package]
    names: Vec<String>,
    /// Let packages run their install scripts and build from source
    #[arg(long)]
    allow_scripts: bool,
    /// Print the result as JSON: {installed: [{name, package, digest}]}
    #[arg(long)]
    json: bool,
}

impl Install {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let loaded = load_settings(flags)?;
        let state = state_dir(loaded.settings.state_dir.as_ref())?;
        let (mut installed, mut failed) = (Vec::new(), Vec::new());
        for (name, server) in self.selected(&loaded)? {
            let Some(package) = &server.package else { continue };
            let SettingOrigin::File(file) = loaded.layers.origin(&format!("servers.{name}.package")) else {
                return Err(AppError::invalid(format!("{name} is not defined in a file.")));
            };
            let path = ServersLock::path_beside(&file);
            let lock = ServersLock::read(&path)?;
            // The digest in the settings is that of an approved lock file.
            let is_it = |locked: &&LockedPackage| {
                locked.package == *package && server.digest.as_ref() == Some(&locked.digest)
            };
            let locked = lock.servers.get(name).filter(is_it).ok_or_else(|| {
                let source = if package.starts_with("mcpb:") { "FILE.mcpb" } else { package };
                AppError::new(format!(
                    "{} has no approved {package} for {name}. Review it and run `octoprox trust`, or run: octoprox add \
                     {source} --as {name} --update",
                    path.display()
                ))
            })?;
            let folder = path.parent().unwrap_or(Path::new("/"));
            let options = InstallOptions { scripts: self.allow_scripts, use_cache: false };
            // One failure does not stop the others.
            if let Err(error) = install(&state, locked, folder, options) {
                console::print_err(&format!("{name}: {error}"));
                failed.push(name.to_owned());
                continue;
            }
            if !self.json {
                console::print(&format!("installed {name}: {package}"))?;
            }
            installed.push(json!({"name": name, "package": package, "digest": locked.digest}));
        }
        if self.json {
            console::print(&json!({"installed": installed}).to_string())?;
        } else if installed.is_empty() && failed.is_empty() {
            console::print_err("No server has a package.");
        }
        match failed.as_slice() {
            [] => Ok(()),
            failed => Err(AppError::new(format!("Not installed: {}.", failed.join(", ")))),
        }
    }

    fn selected<'a>(&self, loaded: &'a LoadedSettings) -> Result<Vec<(&'a String, &'a Server)>, AppError> {
        let servers = &loaded.settings.servers;
        if self.names.is_empty() {
            return Ok(servers.iter().collect());
        }
        let find = |name: &String| {
            servers.get_key_value(name).ok_or_else(|| {
                let error = ToolError::not_found(format!("Server not found: `{name}`."));
                AppError::from(error.hint("Run `octoprox servers list` to see the servers."))
            })
        };
        self.names.iter().map(find).collect()
    }
}
