//! `octoprox trust`: approves the settings file of a project.

mod known_secrets;
mod server_lines;
mod settings_effects;

use crate::app_error::AppError;
use crate::settings::load::settings_locations;
use crate::settings::{Environment, Flags, Preview, SettingsProblems, TrustStore};
use crate::terminal::console;
use crate::terminal::prompter::Prompter;
use crate::terminal::text_table::{escape_line, sanitize_text};
use clap::Args;
use known_secrets::MaskedSettings;
use serde_json::json;
use std::path::PathBuf;

/// Approve a settings file.
///
/// A settings file decides which programs run. That is why octoprox ignores the `octoprox.yaml` of a project, and refuses
/// a settings file that tools can write, until you approve it here. The command shows what the file would do and the file
/// itself, and then asks. It records the path and the SHA-256 of the file, of `servers.yaml` and `servers.lock` beside it,
/// of the prompts, declared tools and OpenAPI documents that it names, and of the scripts in the project that its servers
/// start. A file that changes must be approved again.
#[derive(Args)]
#[command(after_help = "Examples:
  octoprox trust
  octoprox trust deploy/octoprox.yaml --yes
  octoprox trust --list
  octoprox trust --revoke ~/projects/old/octoprox.yaml")]
pub struct Trust {
    /// Settings file, or directory that contains one [default: ./octoprox.yaml]
    path: Option<PathBuf>,
    /// Approve without asking, for scripts
    #[arg(short, long)]
    yes: bool,
    /// Show what the file would do without approving it
    #[arg(long, conflicts_with_all = ["yes", "list", "revoke"])]
    dry_run: bool,
    /// Show the whole files, however long they are
    #[arg(long, conflicts_with_all = ["list", "revoke"])]
    full: bool,
    /// List the approved files
    #[arg(long, conflicts_with_all = ["path", "revoke"])]
    list: bool,
    /// Withdraw the approval of a file, and of the files that were approved beside it
    #[arg(long, value_name = "PATH", conflicts_with = "path")]
    revoke: Option<PathBuf>,
    /// Print as JSON: {files: [{path, sha256}]}
    #[arg(long, requires = "list")]
    json: bool,
}

impl Trust {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let world = Environment::current();
        let mut store = TrustStore::open(&world).map_err(SettingsProblems::from)?;
        if self.list {
            return print_approved(&store, self.json);
        }
        if let Some(path) = &self.revoke {
            return revoke(&mut store, &settings_file(world.current_dir.join(path)), &world);
        }
        let named = self.path.as_ref().map(|path| world.current_dir.join(path));
        let path = named.or_else(|| settings_locations::named_file(&world, flags.config.as_ref()));
        let path = settings_file(path.unwrap_or_else(|| world.current_dir.clone()));
        let preview = Preview::read(&world, &path).map_err(SettingsProblems::from)?;
        self.show(&path, &preview)?;
        if self.dry_run {
            return Ok(());
        }
        let asker = Prompter::new(self.yes, "trust")?;
        if asker == Prompter::Interactive && !asker.confirm("Approve it?", false)? {
            return Err(AppError::new("Nothing was approved."));
        }
        store.approve(&preview.records).map_err(|error| store_error(&error))?;
        console::print_err(&format!("Approved {}. Approve it again after each change.", path.display()));
        Ok(())
    }

    fn show(&self, path: &std::path::Path, preview: &Preview) -> Result<(), AppError> {
        let mut lines = vec![path.display().to_string()];
        let masked = MaskedSettings::new(&preview.tree);
        let effects = settings_effects::describe_effects(&masked.tree);
        if effects.is_empty() {
            lines.push("  has no settings".to_owned());
        }
        lines.extend(effects.iter().map(|effect| format!("  {effect}")));
        let together = preview.records.iter().skip(1);
        lines.extend(together.map(|record| format!("  is approved together with {}", record.path.display())));
        for file in &preview.files {
            lines.push(format!("The content of {}:", file.path.display()));
            lines.extend(self.file_lines(&masked.hide_in(file.text())));
        }
        let shown: Vec<String> = lines.iter().map(|line| escape_line(line)).collect();
        Ok(console::print(&shown.join("\n"))?)
    }

    /// Lines of a file, which cannot look like those of the card.
    fn file_lines(&self, text: &str) -> Vec<String> {
        let whole = text.strip_suffix('\n').unwrap_or(text);
        let count = whole.split('\n').count();
        let limit = if self.full { usize::MAX } else { MAX_FILE_LINES };
        let short = |line: &str| match line.char_indices().nth(MAX_LINE_CHARS).filter(|_| !self.full) {
            Some((end, _)) => format!("{}… (truncated)", line.get(..end).unwrap_or_default()),
            None => line.to_owned(),
        };
        let mut lines: Vec<String> =
            whole.split('\n').take(limit).map(|line| format!("  | {}", short(line))).collect();
        if count > limit || lines.iter().any(|line| line.ends_with("… (truncated)")) {
            lines.push("  Not all of it is shown. `octoprox trust --full` shows the rest.".to_owned());
        }
        lines
    }
}

/// Lines of a file that are shown without `--full`. The effects above it are always complete.
const MAX_FILE_LINES: usize = 200;
/// Characters of such a line.
const MAX_LINE_CHARS: usize = 500;

/// Returns the settings file in a directory; other paths unchanged.
fn settings_file(path: PathBuf) -> PathBuf {
    if path.is_dir() { path.join("octoprox.yaml") } else { path }
}

fn print_approved(store: &TrustStore, json: bool) -> Result<(), AppError> {
    let records = store.records();
    if json {
        let files = records.iter().map(|record| json!({"path": record.path, "sha256": record.sha256}));
        return Ok(console::print(&json!({"files": files.collect::<Vec<_>>()}).to_string())?);
    }
    if records.is_empty() {
        console::print_err("No file is approved.");
    }
    for record in records {
        let short = record.sha256.get(..12).unwrap_or_default();
        console::print(&sanitize_text(&format!("{short}  {}\n", record.path.display())))?;
    }
    Ok(())
}

/// Withdraws the approval of a file and of all approved files in its directory, which belong to the same project.
fn revoke(store: &mut TrustStore, path: &std::path::Path, world: &Environment) -> Result<(), AppError> {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let is_it = |known: &PathBuf| *known == real || known == path;
    let folder = real.parent().map(std::path::Path::to_owned).unwrap_or_default();
    let known = store.records().iter().any(|record| is_it(&record.path) || is_it(&record.named));
    if !known {
        let error = octo_model::ToolError::not_found(format!("{} is not approved.", path.display()));
        return Err(error.hint("Run `octoprox trust --list` to see the approved files.").into());
    }
    let beside = store.records().iter().filter(|record| record.path.parent() == Some(&folder));
    // Its scripts can be anywhere in the project.
    let named = Preview::read(world, path).map(|preview| preview.records).unwrap_or_default();
    let named = named.into_iter().map(|record| record.path);
    let paths =
        beside.map(|record| record.path.clone()).chain(named).chain([real, path.to_owned()]).collect();
    let count = store.revoke(&paths).map_err(|error| store_error(&error))?;
    console::print_err(&format!(
        "Withdrew the approval of {count} file{}.",
        if count == 1 { "" } else { "s" }
    ));
    Ok(())
}

fn store_error(error: &std::io::Error) -> AppError {
    AppError::new(format!("Cannot write the list of approved files: {error}. Check the state directory."))
}
