//! Questions of `octoprox init`.

use crate::app_error::AppError;
use crate::cli::commands::init_command::{Init, InstalledClient};
use crate::clients::{Client, required_variables};
use crate::settings::{Environment, unfit_reason};
use crate::terminal::console;
use crate::terminal::hidden_input::read_hidden_value;
use crate::terminal::prompter::Prompter;
use crate::terminal::text_table::sanitize_line;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Answers of the user, or the defaults.
pub struct InitAnswers {
    /// Directory that tools work in; if `None`, the one that octoprox is started in.
    pub workspace: Option<String>,
    /// Opt-in toolboxes, and whether each is enabled.
    pub switches: Vec<(&'static str, bool)>,
    pub import: Vec<&'static Client>,
    pub register: Vec<&'static Client>,
    /// Whether imported servers are removed from the clients' own lists.
    pub remove: bool,
    /// Whether the secrets of imported servers are stored.
    pub store_secrets: bool,
    /// Values entered for variables that imported servers need.
    pub values: BTreeMap<String, String>,
}

/// Toolboxes that are off by default because they can do harm, with a description.
pub const OPT_IN_TOOLBOXES: [(&str, &str); 3] = [
    ("shell", "runs commands in a sandbox"),
    ("browser", "controls its own browser"),
    ("database", "queries databases that you name"),
];

impl InitAnswers {
    pub fn ask(
        init: &Init,
        asker: Prompter,
        settings: &Path,
        present: &[InstalledClient],
        is_known: &dyn Fn(&str) -> bool,
    ) -> Result<Self, AppError> {
        let mut answers = Self {
            workspace: None,
            switches: Vec::new(),
            import: Vec::new(),
            register: Vec::new(),
            remove: !init.keep,
            store_secrets: !init.no_secrets,
            values: BTreeMap::new(),
        };
        if !settings.exists() {
            answers.workspace = ask_workspace(asker)?;
            for (toolbox, about) in OPT_IN_TOOLBOXES {
                let on = asker.confirm(&format!("Enable the {toolbox} toolbox, which {about}?"), false)?;
                answers.switches.push((toolbox, on));
            }
        }
        for client in present {
            let InstalledClient { config: place, file: reading } = client;
            let title = place.client.title;
            let servers = reading.as_ref().map_or(0, |reading| reading.servers.entries.len());
            let some = if servers == 1 { "the server".to_owned() } else { format!("the {servers} servers") };
            if !init.no_import && servers > 0 && asker.confirm(&format!("Import {some} of {title}?"), true)? {
                answers.import.push(place.client);
            }
            if !init.no_register && asker.confirm(&format!("Register octoprox with {title}?"), true)? {
                answers.register.push(place.client);
            }
        }
        if answers.store_secrets && !answers.import.is_empty() {
            let question = "Store the secrets of these servers (encrypted)?";
            answers.store_secrets = asker.confirm(question, true)?;
        }
        if answers.store_secrets && asker == Prompter::Interactive {
            answers.ask_values(present, is_known)?;
        }
        if answers.remove && !answers.import.is_empty() && !answers.register.is_empty() {
            let question = "Remove these servers from the clients, so that no tool appears twice?";
            answers.remove = asker.confirm(question, true)?;
        }
        Ok(answers)
    }

    /// The clients whose servers are imported.
    pub fn imported<'a>(&self, present: &'a [InstalledClient]) -> impl Iterator<Item = &'a InstalledClient> {
        present.iter().filter(|client| self.import.contains(&client.config.client))
    }

    /// Asks for the values of variables that are not set.
    fn ask_values(
        &mut self,
        present: &[InstalledClient],
        is_known: &dyn Fn(&str) -> bool,
    ) -> Result<(), AppError> {
        for (variable, servers) in needed_variables(self.imported(present)) {
            if is_known(&variable) {
                continue;
            }
            let servers: Vec<String> = servers.into_iter().collect();
            let verb = if servers.len() == 1 { "needs" } else { "need" };
            let question =
                format!("Value of {variable}, which {} {verb} [skip]: ", sanitize_line(&servers.join(", ")));
            let value = read_hidden_value(&question)?;
            if !value.is_empty() {
                self.values.insert(variable, value);
            }
        }
        Ok(())
    }
}

/// Variables that the servers of these clients need, with the servers.
pub fn needed_variables<'a>(
    present: impl IntoIterator<Item = &'a InstalledClient>,
) -> BTreeMap<String, BTreeSet<String>> {
    let mut needed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let files = present.into_iter().filter_map(|client| client.file.as_ref());
    for entry in files.flat_map(|file| &file.servers.entries) {
        for variable in required_variables(&entry.server) {
            needed.entry(variable).or_default().insert(entry.name.clone());
        }
    }
    needed
}

fn ask_workspace(asker: Prompter) -> Result<Option<String>, AppError> {
    loop {
        let usual = "the project that octoprox is started in";
        let Some(folder) = asker.ask_line("Directory that tools work in", usual)? else {
            return Ok(None);
        };
        let home = std::env::home_dir().unwrap_or_default();
        let real =
            folder.strip_prefix("~/").map_or_else(|| Path::new(&folder).to_owned(), |rest| home.join(rest));
        match (std::path::absolute(&real), unfit_reason(&Environment::current(), &real)) {
            (Ok(_), Some(is)) => {
                console::print_err(&format!("{folder} is {is}. Enter a directory for your projects."))
            }
            (Ok(whole), None) if whole.is_dir() => return Ok(Some(whole.display().to_string())),
            _ => console::print_err(&format!("Directory not found: {folder}")),
        }
    }
}
