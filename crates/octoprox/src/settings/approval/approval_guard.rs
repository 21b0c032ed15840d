//! Approval rules: settings files that tools or other users can write require approval, and tools never write settings
//! files in use.

use crate::settings::approval::script_scope::ScriptScope;
use crate::settings::approval::settings_choice::{self, Chooser, is_inside_any};
use crate::settings::approval::trust_store::{Approval, TrustStore};
use crate::settings::check::settings_problem::{SettingOrigin, SettingsProblem};
use crate::settings::load::settings_file::SettingsFile;
use crate::settings::load::settings_locations;
use crate::settings::{Environment, Settings};
use octo_grants::config_dirs::FileApproval;
use serde_json::Value;
use std::path::{Path, PathBuf};

const NOT_APPROVED_REASON: &str = "is not approved; review it, then run `octoprox trust`";

/// Directories that tools can write to, according to these settings and earlier ones.
pub struct ApprovalGuard<'a> {
    settings: &'a Settings,
    trust: &'a TrustStore,
    writable: Vec<PathBuf>,
}

impl<'a> ApprovalGuard<'a> {
    pub fn new(settings: &'a Settings, trust: &'a TrustStore) -> Self {
        let writable = settings.writable_folders().into_iter().map(|folder| canonical(&folder));
        let writable = writable.chain(trust.writable_roots().map(Path::to_owned)).collect();
        Self { settings, trust, writable }
    }

    /// Returns why a file requires approval.
    fn needs_approval(&self, file: &SettingsFile) -> Option<&'static str> {
        // The file itself and the symlink it was named by.
        let written = [file.canonical.clone(), canonical_parent(&file.path)];
        let written = written.iter().any(|path| is_inside_any(path, &self.writable));
        match (written, file.is_writable_by_others) {
            (true, _) => Some("tools can write to the directory of this file, and it is not approved"),
            (false, true) => Some("other users can write to this file, and it is not approved"),
            (false, false) => None,
        }
    }

    fn depends_on_approval(&self, read: &[SettingsFile], chooser: Chooser) -> bool {
        chooser == Chooser::Approval || read.iter().any(|file| self.needs_approval(file).is_some())
    }

    pub fn problems(&self, read: &[SettingsFile], chooser: Chooser) -> Vec<SettingsProblem> {
        let unapproved = read.iter().filter(|file| self.trust.approval(file) != Approval::Approved);
        let mut problems: Vec<SettingsProblem> = unapproved
            .filter_map(|file| self.needs_approval(file).map(|why| settings_choice::refused_file(file, why)))
            .collect();
        // Tools cannot access the state directory; records elsewhere below a root are not protected.
        let folder = self.trust.folder().map(canonical);
        let is_state = folder == self.settings.state_dir.as_deref().map(canonical);
        if let Some(folder) = folder.filter(|folder| !is_state && is_inside_any(folder, &self.writable))
            && self.depends_on_approval(read, chooser)
        {
            problems.push(SettingsProblem::new(
                SettingOrigin::File(folder),
                "",
                "tools can write to the list of approved files, so it is not trusted.",
                "Use a workspace that does not contain it.",
            ));
        }
        problems
    }

    /// Scripts that servers of an approved file start require approval of their own, too.
    pub fn script_scope(&self, read: &[SettingsFile], chooser: Chooser, tree: &Value) -> Option<ScriptScope> {
        let paths = read.iter().flat_map(|file| [file.path.as_path(), &file.canonical]);
        self.depends_on_approval(read, chooser).then(|| ScriptScope::new(tree, paths, self.trust))
    }

    /// Files named in an approved file require their own approval, initially and after every change.
    pub fn approval_check(&self, read: &[SettingsFile], chooser: Chooser) -> Option<FileApproval> {
        if !self.depends_on_approval(read, chooser) {
            return None;
        }
        let trust = self.trust.clone();
        Some(FileApproval::new(move |real, content| {
            trust.is_approved(real, content).then_some(()).ok_or_else(|| NOT_APPROVED_REASON.to_owned())
        }))
    }
}

/// Returns the files and directories that determine what runs. Tools may read but never write them, including those
/// that do not exist yet.
pub fn protected_paths(
    world: &Environment,
    settings: &Settings,
    trust: &TrustStore,
    files: &[PathBuf],
) -> Vec<PathBuf> {
    let own = settings_locations::user_config_dir(world)
        .map(|folder| ["octoprox.yaml", "servers.yaml", "servers.lock"].map(|name| folder.join(name)));
    let named = settings.named_files();
    let all = files.iter().cloned().chain(own.into_iter().flatten()).chain(trust.path()).chain(named);
    let mut all: Vec<PathBuf> = all.flat_map(|path| [canonical(&path), canonical_parent(&path)]).collect();
    // A parent directory of a workspace would make the whole workspace read-only.
    let roots: Vec<PathBuf> = settings.writable_folders().iter().map(|folder| canonical(folder)).collect();
    all.retain(|path| !roots.iter().any(|root| root.starts_with(path)));
    all.sort();
    all.dedup();
    all
}

/// Returns the canonical path, or the closest approximation if it does not exist.
fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| canonical_parent(path))
}

/// Returns the path below its canonical parent directory, without resolving a symlink in the last component.
fn canonical_parent(path: &Path) -> PathBuf {
    let above = path.ancestors().skip(1).find_map(|above| Some((above, above.canonicalize().ok()?)));
    let Some((above, real)) = above else { return path.to_owned() };
    path.strip_prefix(above).map_or_else(|_| path.to_owned(), |rest| real.join(rest))
}
