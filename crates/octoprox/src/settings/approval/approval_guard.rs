//! Settings files that tools can write, or others, need a person's approval; and tools write none that is in use.

use crate::settings::approval::settings_choice::{self, Chooser, is_inside_any};
use crate::settings::approval::trust_store::{Approval, TrustStore};
use crate::settings::check::settings_problem::{SettingOrigin, SettingsProblem};
use crate::settings::load::settings_file::SettingsFile;
use crate::settings::load::settings_locations;
use crate::settings::{Environment, Settings};
use octo_grants::config_dirs::FileApproval;
use std::path::{Path, PathBuf};

/// Where tools can write, by these settings and by earlier ones.
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

    /// Why a file counts only when it was approved.
    fn needs_approval(&self, file: &SettingsFile) -> Option<&'static str> {
        // The file, and the link that it was named by.
        let written = [file.canonical.clone(), canonical_parent(&file.path)];
        let written = written.iter().any(|path| is_inside_any(path, &self.writable));
        match (written, file.is_writable_by_others) {
            (true, _) => Some("tools can write to the folder that this file is in, and it is not approved"),
            (false, true) => Some("other users of this machine can write this file, and it is not approved"),
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
        // The hub's own data is closed to tools; records anywhere else beneath a root are not.
        let folder = self.trust.folder().map(canonical);
        let is_state = folder == self.settings.state_dir.as_deref().map(canonical);
        if let Some(folder) = folder.filter(|folder| !is_state && is_inside_any(folder, &self.writable))
            && self.depends_on_approval(read, chooser)
        {
            problems.push(SettingsProblem::new(
                SettingOrigin::File(folder),
                "",
                "tools can write to the list of approved files, so it is not believed.",
                "Choose a workspace that does not contain it.",
            ));
        }
        problems
    }

    /// Files that an approved file names count only with an approval of their own, now and when they change.
    pub fn approval_check(&self, read: &[SettingsFile], chooser: Chooser) -> Option<FileApproval> {
        if !self.depends_on_approval(read, chooser) {
            return None;
        }
        let trust = self.trust.clone();
        Some(FileApproval::new(move |real, content| trust.is_approved(real, content)))
    }
}

/// Files and folders that decide what runs. Tools may read and never change them, also those that are not there yet.
pub fn protected_paths(
    world: &Environment,
    settings: &Settings,
    trust: &TrustStore,
    files: &[PathBuf],
) -> Vec<PathBuf> {
    let own = settings_locations::user_config_dir(world)
        .map(|folder| ["octoprox.yaml", "servers.yaml"].map(|name| folder.join(name)));
    let named = settings.named_files();
    let all = files.iter().cloned().chain(own.into_iter().flatten()).chain(trust.path()).chain(named);
    let mut all: Vec<PathBuf> = all.flat_map(|path| [canonical(&path), canonical_parent(&path)]).collect();
    // A folder that a workspace lies in would close the workspace.
    let roots: Vec<PathBuf> = settings.writable_folders().iter().map(|folder| canonical(folder)).collect();
    all.retain(|path| !roots.iter().any(|root| root.starts_with(path)));
    all.sort();
    all.dedup();
    all
}

/// The canonical path, or what comes nearest to it where nothing is.
fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| canonical_parent(path))
}

/// The path itself, a link or not, in its canonical folder.
fn canonical_parent(path: &Path) -> PathBuf {
    let above = path.ancestors().skip(1).find_map(|above| Some((above, above.canonicalize().ok()?)));
    let Some((above, real)) = above else { return path.to_owned() };
    path.strip_prefix(above).map_or_else(|_| path.to_owned(), |rest| real.join(rest))
}
