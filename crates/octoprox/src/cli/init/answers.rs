//! What the person wants.

use super::{Init, Present};
use crate::cli::ask::Asker;
use crate::cli::failure::Failure;
use crate::cli::out;
use crate::clients::Client;
use crate::settings::{World, unfit};
use std::path::Path;

/// The answers, or the defaults.
pub struct Answers {
    /// Folder that tools work in; the one octoprox is started in when it is not set.
    pub workspace: Option<String>,
    /// Toolboxes that are off until asked for, and whether they were.
    pub switches: Vec<(&'static str, bool)>,
    pub import: Vec<Client>,
    pub register: Vec<Client>,
}

/// Toolboxes that can do harm, and what they do.
pub const CAREFUL: [(&str, &str); 3] = [
    ("shell", "runs commands, in a sandbox"),
    ("browser", "drives a browser of its own"),
    ("database", "queries databases that you name"),
];

impl Answers {
    pub fn ask(init: &Init, asker: Asker, settings: &Path, present: &[Present]) -> Result<Self, Failure> {
        let mut answers =
            Self { workspace: None, switches: Vec::new(), import: Vec::new(), register: Vec::new() };
        if !settings.exists() {
            answers.workspace = asker_for_folder(asker)?;
            for (toolbox, about) in CAREFUL {
                let on =
                    asker.yes_or_no(&format!("Switch on the toolbox {toolbox}, which {about}?"), false)?;
                answers.switches.push((toolbox, on));
            }
        }
        for client in present {
            let Present { place, reading } = client;
            let title = place.client.title();
            let servers = reading.as_ref().map_or(0, |reading| reading.found.entries.len());
            let some = if servers == 1 { "the server".to_owned() } else { format!("the {servers} servers") };
            if !init.no_import
                && servers > 0
                && asker.yes_or_no(&format!("Take over {some} of {title}?"), true)?
            {
                answers.import.push(place.client);
            }
            if !init.no_register && asker.yes_or_no(&format!("Register octoprox with {title}?"), true)? {
                answers.register.push(place.client);
            }
        }
        Ok(answers)
    }
}

fn asker_for_folder(asker: Asker) -> Result<Option<String>, Failure> {
    loop {
        let usual = "the project that octoprox is started in";
        let Some(folder) = asker.line("Folder that tools work in", usual)? else {
            return Ok(None);
        };
        let home = std::env::home_dir().unwrap_or_default();
        let real =
            folder.strip_prefix("~/").map_or_else(|| Path::new(&folder).to_owned(), |rest| home.join(rest));
        match (std::path::absolute(&real), unfit(&World::real(), &real)) {
            (Ok(_), Some(is)) => out::talk(&format!("{folder} is {is}. Name a folder for your projects.")),
            (Ok(whole), None) if whole.is_dir() => return Ok(Some(whole.display().to_string())),
            _ => out::talk(&format!("There is no folder {folder}.")),
        }
    }
}
