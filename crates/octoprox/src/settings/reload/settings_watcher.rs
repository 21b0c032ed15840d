//! Watches the settings while the hub runs and reports changes.

use crate::settings::check::settings_problem::{SettingOrigin, SettingsProblem, SettingsProblems};
use crate::settings::load::load_settings::{LoadedSettings, load};
use crate::settings::load::settings_sources::Flags;
use crate::settings::reload::reloadable::{changed_settings, with_reloadable};
use crate::settings::reload::server_plan::{Action, ServerChange, plan};
use crate::settings::{Environment, Settings, UnsetVariables, unauthenticated_binding};
use octo_grants::config_dirs::{ConfigDirs, WatchHandle};
use std::path::PathBuf;
use std::time::Duration;

/// Difference between the files and the settings in force.
pub struct ReloadPlan {
    pub settings: Settings,
    /// Changes of servers.
    pub changes: Vec<ServerChange>,
    /// Other settings that apply at run time.
    pub applied: Vec<String>,
    /// Settings that require a restart.
    pub needs_restart: Vec<String>,
    pub missing: UnsetVariables,
    /// New secret values.
    pub secrets: Vec<String>,
    /// Why these settings are not allowed for a listener.
    pub binding: Option<SettingsProblem>,
}

impl ReloadPlan {
    fn is_unchanged(&self) -> bool {
        self.applied.is_empty() && self.changes.iter().all(|change| change.action == Action::Unchanged)
    }
}

/// Two reads this far apart must agree.
const STABLE_INTERVAL: Duration = Duration::from_millis(60);
const MAX_READS: usize = 10;

/// Reads the settings again and compares them with those in force.
pub struct SettingsReader {
    world: Environment,
    flags: Flags,
    file: Option<PathBuf>,
    /// Known messages about ignored files.
    unapproved: Vec<String>,
    in_force: Settings,
}

impl SettingsReader {
    /// `in_force` are the settings as read, before a listener fills in its port.
    pub fn new(world: Environment, flags: Flags, loaded: &LoadedSettings, in_force: Settings) -> Self {
        Self { world, flags, file: loaded.file.clone(), unapproved: loaded.unapproved.clone(), in_force }
    }

    /// Returns the changes or the problems. A file that requires approval is not applied until its new content is
    /// approved.
    pub fn read(&self) -> Result<ReloadPlan, SettingsProblems> {
        let loaded = load(&self.world, &self.flags)?;
        let loaded = require_same_file(loaded, self.file.as_ref(), &self.unapproved)?;
        let live = with_reloadable(&self.in_force, &loaded.settings);
        Ok(ReloadPlan {
            changes: plan(&self.in_force.servers, &loaded.settings.servers),
            applied: changed_settings(&self.in_force, &live),
            needs_restart: changed_settings(&live, &loaded.settings),
            secrets: crate::telemetry::settings_secrets(&loaded),
            binding: unauthenticated_binding(&loaded.settings, &loaded.layers),
            settings: loaded.settings,
            missing: loaded.unset_variables,
        })
    }

    /// Waits until the files are stable, so that a partially written or momentarily empty file is not applied. Blocks
    /// the thread.
    pub fn read_stable(&self) -> Result<ReloadPlan, SettingsProblems> {
        let mut read = self.read()?;
        for _ in 0..MAX_READS {
            if read.is_unchanged() {
                break;
            }
            std::thread::sleep(STABLE_INTERVAL);
            let again = self.read()?;
            let settled = again.settings == read.settings;
            read = again;
            if settled {
                break;
            }
        }
        Ok(read)
    }

    /// Marks the plan as in force, as far as it applies at run time.
    pub fn mark_applied(&mut self, reloaded: &ReloadPlan) {
        self.in_force = with_reloadable(&self.in_force, &reloaded.settings);
    }
}

/// Watches the settings files until dropped.
pub struct SettingsWatcher(#[expect(dead_code, reason = "it watches until it is dropped")] WatchHandle);

impl SettingsWatcher {
    /// Calls `changed` after each change. Needs a runtime.
    pub fn start(loaded: &LoadedSettings, mut changed: impl FnMut() + Send + 'static) -> Self {
        let folders = ConfigDirs::new(loaded.watched_files.clone());
        let leaves = folders.read();
        Self(folders.watch(leaves, move |_| changed()))
    }
}

/// Rejects settings that result from a file being newly approved or no longer approved.
fn require_same_file(
    loaded: LoadedSettings,
    file: Option<&PathBuf>,
    known: &[String],
) -> Result<LoadedSettings, SettingsProblems> {
    let origin = || SettingOrigin::File(file.cloned().unwrap_or_default());
    if let Some(ignored) = loaded.unapproved.iter().find(|ignored| !known.contains(ignored)) {
        return Err(SettingsProblem::new(origin(), "", ignored.as_str(), "").into());
    }
    if loaded.file.as_ref() != file {
        let what = "a different settings file would be used now.";
        let origin = loaded.file.clone().map_or_else(origin, SettingOrigin::File);
        return Err(SettingsProblem::new(origin, "", what, "Restart the hub to use it.").into());
    }
    Ok(loaded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{SettingsFile, TrustStore};

    type Said = Result<Vec<Action>, String>;

    fn actions(rereader: &mut SettingsReader) -> Said {
        let reloaded = rereader.read().map_err(|problems| problems.to_string())?;
        rereader.mark_applied(&reloaded);
        Ok(reloaded.changes.iter().map(|it| it.action).collect())
    }

    #[tokio::test]
    async fn a_change_is_told_as_a_plan_and_a_broken_file_changes_nothing() {
        let home = tempfile::tempdir().unwrap();
        let (own, work) = (home.path().join("own"), home.path().join("work"));
        std::fs::create_dir_all(&own).unwrap();
        std::fs::create_dir_all(&work).unwrap();
        std::fs::write(own.join("octoprox.yaml"), format!("workspace: {}\n", work.display())).unwrap();
        let variables = [("OCTOPROX_CONFIG".to_owned(), "octoprox.yaml".to_owned())].into();
        let world = Environment { current_dir: own.clone(), variables };
        let loaded = load(&world, &Flags::default()).unwrap();
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let mut rereader = SettingsReader::new(world, Flags::default(), &loaded, loaded.settings.clone());
        let _watched = SettingsWatcher::start(&loaded, move || tell.send(actions(&mut rereader)).unwrap());
        let mut next = async |wanted: &dyn Fn(&Said) -> bool| {
            let seen = async { while !wanted(&told.recv().await.unwrap()) {} };
            tokio::time::timeout(Duration::from_secs(10), seen).await.expect("no change was told of");
        };
        let list = own.join("servers.yaml");
        std::fs::write(&list, "servers: {a: {command: x}}").unwrap();
        next(&|said| *said == Ok(vec![Action::Connect])).await;
        std::fs::write(&list, "servers: {a: {comand: x}}").unwrap();
        next(&|said| said.as_ref().is_err_and(|why| why.contains("comand"))).await;
        std::fs::write(&list, "servers: {a: {command: y}, b: {command: z}}").unwrap();
        next(&|said| *said == Ok(vec![Action::Swap, Action::Connect])).await;
    }

    #[tokio::test]
    async fn a_projects_changed_file_is_taken_on_when_it_is_approved_again() {
        let top = tempfile::tempdir().unwrap();
        let work = top.path().canonicalize().unwrap().join("work");
        std::fs::create_dir(&work).unwrap();
        let path = work.join("octoprox.yaml");
        let variables = [("HOME".to_owned(), top.path().join("home").display().to_string())].into();
        let world = Environment { current_dir: work.clone(), variables };
        let approve = || {
            let record = SettingsFile::open(&path).unwrap().record();
            TrustStore::open(&world).unwrap().approve(&[record]).unwrap();
        };
        std::fs::write(&path, "servers: {a: {command: x}}").unwrap();
        approve();
        let loaded = load(&world, &Flags::default()).unwrap();
        assert_eq!(loaded.file.as_ref(), Some(&path));
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let mut rereader =
            SettingsReader::new(world.clone(), Flags::default(), &loaded, loaded.settings.clone());
        let _watched = SettingsWatcher::start(&loaded, move || tell.send(actions(&mut rereader)).unwrap());
        let mut next = async |wanted: &dyn Fn(&Said) -> bool| {
            let seen = async { while !wanted(&told.recv().await.unwrap()) {} };
            tokio::time::timeout(Duration::from_secs(10), seen).await.expect("no change was told of");
        };
        std::fs::write(&path, "servers: {b: {command: evil}}").unwrap();
        next(&|said| said.as_ref().is_err_and(|why| why.contains("has changed since it was approved"))).await;
        approve();
        next(&|said| *said == Ok(vec![Action::Drop, Action::Connect])).await;
    }
}
