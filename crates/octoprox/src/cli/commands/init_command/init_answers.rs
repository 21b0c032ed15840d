//! Questions of `octoprox init`.

use crate::app_error::AppError;
use crate::cli::commands::init_command::{Init, InstalledClient};
use crate::clients::Client;
use crate::settings::{Environment, unfit_reason};
use crate::terminal::console;
use crate::terminal::prompter::Prompter;
use std::path::Path;

/// Answers of the user, or the defaults.
pub struct InitAnswers {
    /// Directory that tools work in; if `None`, the one that octoprox is started in.
    pub workspace: Option<String>,
    /// Opt-in toolboxes, and whether each is enabled.
    pub switches: Vec<(&'static str, bool)>,
    pub import: Vec<Client>,
    pub register: Vec<Client>,
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
    ) -> Result<Self, AppError> {
        let mut answers =
            Self { workspace: None, switches: Vec::new(), import: Vec::new(), register: Vec::new() };
        if !settings.exists() {
            answers.workspace = ask_workspace(asker)?;
            for (toolbox, about) in OPT_IN_TOOLBOXES {
                let on = asker.confirm(&format!("Enable the {toolbox} toolbox, which {about}?"), false)?;
                answers.switches.push((toolbox, on));
            }
        }
        for client in present {
            let InstalledClient { config: place, file: reading } = client;
            let title = place.client.title();
            let servers = reading.as_ref().map_or(0, |reading| reading.servers.entries.len());
            let some = if servers == 1 { "the server".to_owned() } else { format!("the {servers} servers") };
            if !init.no_import && servers > 0 && asker.confirm(&format!("Import {some} of {title}?"), true)? {
                answers.import.push(place.client);
            }
            if !init.no_register && asker.confirm(&format!("Register octoprox with {title}?"), true)? {
                answers.register.push(place.client);
            }
        }
        Ok(answers)
    }
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
