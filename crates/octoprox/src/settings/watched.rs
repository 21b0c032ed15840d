//! Settings that are followed while the hub runs: what changes about servers is told as a plan.

use super::load::{Flags, Loaded, load};
use super::plan::{Change, Servers, plan};
use super::problem::{Origin, Problem, Problems};
use super::{Missing, World};
use octo_grants::folders::{Folders, Following};
use std::path::PathBuf;

/// What the files say by now.
pub struct Reloaded {
    pub servers: Servers,
    pub changes: Vec<Change>,
    pub missing: Missing,
    /// New values that must not be shown.
    pub secrets: Vec<String>,
}

/// Follows the files that servers are read from until it is dropped.
pub struct Watched(#[expect(dead_code, reason = "it follows until it is dropped")] Following);

impl Watched {
    /// Calls back after each change: with a plan from what was there before, or with what is wrong; then everything stays as
    /// it was. A file that needs approval is not taken on until a person has approved its new content. Needs a runtime.
    pub fn start(
        world: World,
        flags: Flags,
        loaded: &Loaded,
        mut changed: impl FnMut(Result<Reloaded, Problems>) + Send + 'static,
    ) -> Self {
        let mut before = loaded.settings.servers.clone();
        let (file, known) = (loaded.file.clone(), loaded.unapproved.clone());
        let folders = Folders::new(loaded.followed.clone());
        let leaves = folders.read();
        Self(folders.follow(leaves, move |_| {
            let reloaded = load(&world, &flags).and_then(|loaded| same_file(loaded, file.as_ref(), &known));
            changed(reloaded.map(|loaded| {
                let servers = loaded.settings.servers.clone();
                let changes = plan(&before, &servers);
                before.clone_from(&servers);
                let secrets = crate::telemetry::secrets(&loaded);
                Reloaded { servers, changes, missing: loaded.missing, secrets }
            }));
        }))
    }
}

/// Refuses settings that came about because a file is no longer, or has just been, approved.
fn same_file(loaded: Loaded, file: Option<&PathBuf>, known: &[String]) -> Result<Loaded, Problems> {
    let origin = || Origin::File(file.cloned().unwrap_or_default());
    if let Some(ignored) = loaded.unapproved.iter().find(|ignored| !known.contains(ignored)) {
        return Err(Problem::new(origin(), "", ignored.as_str(), "").into());
    }
    if loaded.file.as_ref() != file {
        let what = "another settings file would be in use now.";
        return Err(Problem::new(origin(), "", what, "Restart the hub to use it.").into());
    }
    Ok(loaded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::plan::Action;
    use crate::settings::{SettingsFile, TrustStore};
    use std::time::Duration;

    type Said = Result<Vec<Action>, String>;

    #[tokio::test]
    async fn a_change_is_told_as_a_plan_and_a_broken_file_changes_nothing() {
        let home = tempfile::tempdir().unwrap();
        let (own, work) = (home.path().join("own"), home.path().join("work"));
        std::fs::create_dir_all(&own).unwrap();
        std::fs::create_dir_all(&work).unwrap();
        std::fs::write(own.join("octoprox.yaml"), format!("workspace: {}\n", work.display())).unwrap();
        let variables = [("OCTOPROX_CONFIG".to_owned(), "octoprox.yaml".to_owned())].into();
        let world = World { folder: own.clone(), variables };
        let loaded = load(&world, &Flags::default()).unwrap();
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let _watched = Watched::start(world, Flags::default(), &loaded, move |reloaded| {
            let said = reloaded.map(|it| it.changes.iter().map(|it| it.action).collect::<Vec<_>>());
            tell.send(said.map_err(|problems| problems.to_string())).unwrap();
        });
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
        let world = World { folder: work.clone(), variables };
        let approve = || {
            let record = SettingsFile::open(&path).unwrap().record();
            TrustStore::open(&world).unwrap().approve(&[record]).unwrap();
        };
        std::fs::write(&path, "servers: {a: {command: x}}").unwrap();
        approve();
        let loaded = load(&world, &Flags::default()).unwrap();
        assert_eq!(loaded.file.as_ref(), Some(&path));
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let _watched = Watched::start(world.clone(), Flags::default(), &loaded, move |reloaded| {
            let said = reloaded.map(|it| it.changes.iter().map(|it| it.action).collect::<Vec<_>>());
            tell.send(said.map_err(|problems| problems.to_string())).unwrap();
        });
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
