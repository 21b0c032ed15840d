//! Settings that are followed while the hub runs: what changes about servers is told as a plan.

use super::load::{Flags, Loaded, load};
use super::plan::{Change, Servers, plan};
use super::problem::Problems;
use super::{Missing, World};
use octo_grants::Workspace;
use octo_grants::folders::{Folders, Following};
use std::path::{Path, PathBuf};

/// What the files say by now.
pub struct Reloaded {
    pub servers: Servers,
    pub changes: Vec<Change>,
    pub missing: Missing,
    /// New values that must not be shown.
    pub secrets: Vec<String>,
}

/// Follows the files that servers are read from until it is dropped.
pub struct Watched {
    _following: Option<Following>,
    /// A file that is not followed, because agents may write where it lies: whoever writes it decides what runs.
    pub left_alone: Option<PathBuf>,
}

impl Watched {
    /// Calls back after each change: with a plan from what was there before, or with what is wrong; then everything stays as
    /// it was. Needs a runtime.
    pub fn start(
        world: World,
        flags: Flags,
        loaded: &Loaded,
        workspace: &Workspace,
        mut changed: impl FnMut(Result<Reloaded, Problems>) + Send + 'static,
    ) -> Self {
        let files = loaded.server_files.clone();
        if let Some(file) = files.iter().find(|file| agents_may_write(file, workspace)) {
            return Self { _following: None, left_alone: Some(file.clone()) };
        }
        let mut before = loaded.settings.servers.clone();
        let folders = Folders::new(files);
        let known = folders.read();
        let following = folders.follow(known, move |_| match load(&world, &flags) {
            Ok(loaded) => {
                let servers = loaded.settings.servers.clone();
                let changes = plan(&before, &servers);
                before.clone_from(&servers);
                let secrets = crate::telemetry::secrets(&loaded);
                changed(Ok(Reloaded { servers, changes, missing: loaded.missing, secrets }));
            }
            Err(problems) => changed(Err(problems)),
        });
        Self { _following: Some(following), left_alone: None }
    }
}

/// A file that is not there yet is judged by its folder.
fn agents_may_write(file: &Path, workspace: &Workspace) -> bool {
    let real = file.canonicalize().or_else(|_| file.parent().unwrap_or(file).canonicalize());
    let writable = workspace.roots().iter().filter(|root| root.writable);
    real.is_ok_and(|real| writable.into_iter().any(|root| real.starts_with(&root.path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::plan::Action;
    use octo_grants::fs::{RootSpec, WorkspaceSpec};
    use std::time::Duration;

    type Said = Result<Vec<Action>, String>;

    fn workspace(path: PathBuf) -> Workspace {
        let root = RootSpec { name: "work".to_owned(), path, outside: None, writable: true };
        Workspace::open(WorkspaceSpec { roots: vec![root], ..WorkspaceSpec::default() }).unwrap()
    }

    #[tokio::test]
    async fn a_change_is_told_as_a_plan_and_a_broken_file_changes_nothing() {
        let home = tempfile::tempdir().unwrap();
        let (own, work) = (home.path().join("own"), home.path().join("work"));
        std::fs::create_dir_all(&own).unwrap();
        std::fs::create_dir_all(&work).unwrap();
        std::fs::write(own.join("octoprox.yaml"), format!("workspace: {}\n", work.display())).unwrap();
        let world = World { folder: own.clone(), ..World::default() };
        let loaded = load(&world, &Flags::default()).unwrap();
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let watched = Watched::start(world, Flags::default(), &loaded, &workspace(work), move |reloaded| {
            let said = reloaded.map(|it| it.changes.iter().map(|it| it.action).collect::<Vec<_>>());
            tell.send(said.map_err(|problems| problems.to_string())).unwrap();
        });
        assert_eq!(watched.left_alone, None);
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
    async fn files_that_agents_may_write_are_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let work = home.path().canonicalize().unwrap();
        std::fs::write(work.join("octoprox.yaml"), "").unwrap();
        let world = World { folder: work.clone(), ..World::default() };
        let loaded = load(&world, &Flags::default()).unwrap();
        let watched = Watched::start(world, Flags::default(), &loaded, &workspace(work.clone()), |_| {});
        assert_eq!(watched.left_alone, Some(work.join("octoprox.yaml")));
    }
}
