//! Directories with configuration files of the operator, read at startup and again on each change.

use crate::Workspace;
use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::HashMap;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::Notify;

/// Far above any hand-written configuration.
const MAX_FILES: usize = 2_000;
const MAX_FILE_BYTES: u64 = 1 << 20;
const MAX_DEPTH: usize = 8;
/// Editors write a file in several steps.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// Detects changes without a notification: directories created later, file systems without inotify.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// One YAML or JSON file, or a path that cannot be read and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFile {
    pub path: PathBuf,
    pub content: Result<String, String>,
}

type ApprovalCheck = dyn Fn(&Path, &[u8]) -> Result<(), String> + Send + Sync;

/// Decides by canonical path and content whether a file may be used; returns the reason if not.
#[derive(Clone)]
pub struct FileApproval(Arc<ApprovalCheck>);

impl FileApproval {
    pub fn new(approve: impl Fn(&Path, &[u8]) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(approve))
    }
}

impl std::fmt::Debug for FileApproval {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Approve")
    }
}

/// Configured directories (or single files), in order.
#[derive(Debug, Clone)]
pub struct ConfigDirs {
    paths: Vec<PathBuf>,
    /// Maximum bytes of one file.
    max_file_bytes: u64,
    /// Real paths of directories that agents may write.
    agent_writable: Vec<PathBuf>,
    approval: Option<FileApproval>,
    /// Whether files of any type are read.
    all_files: bool,
}

/// Watches the directories until it is dropped.
pub struct WatchHandle(tokio::task::JoinHandle<()>);

impl Drop for WatchHandle {
    fn drop(&mut self) {
        self.0.abort();
    }
}

type FileStamp = (PathBuf, Option<SystemTime>, u64, u64);

impl Default for ConfigDirs {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl ConfigDirs {
    pub fn new(paths: Vec<PathBuf>) -> Self {
        Self {
            paths,
            max_file_bytes: MAX_FILE_BYTES,
            agent_writable: Vec::new(),
            approval: None,
            all_files: false,
        }
    }

    /// Sets the maximum file size, for files that programs write.
    #[must_use]
    pub fn with_max_file_bytes(self, largest: u64) -> Self {
        Self { max_file_bytes: largest, ..self }
    }

    /// Reads files of all types, which must be text.
    #[must_use]
    pub fn with_all_files(self) -> Self {
        Self { all_files: true, ..self }
    }

    /// Skips files that are not approved.
    #[must_use]
    pub fn with_approval(self, approve: Option<FileApproval>) -> Self {
        Self { approval: approve, ..self }
    }

    /// Skips files that agents may write, because these files decide what runs.
    #[must_use]
    pub fn excluding_workspace(mut self, workspace: &Workspace) -> Self {
        let writable = workspace.roots().iter().filter(|root| root.writable);
        self.agent_writable = writable.map(|root| root.path.clone()).collect();
        self
    }

    /// Reads every YAML and JSON file, directory by directory, sorted by path within each.
    pub fn read(&self) -> Vec<ConfigFile> {
        let mut leaves = Vec::new();
        for path in &self.paths {
            match self.files(path) {
                Ok(files) => leaves.extend(files.into_iter().map(|path| self.read_file(path))),
                Err(why) => leaves.push(ConfigFile { path: path.clone(), content: Err(why) }),
            }
        }
        leaves
    }

    /// Calls back with all files after each change. Needs a runtime.
    pub fn watch(
        self,
        known: Vec<ConfigFile>,
        changed: impl FnMut(Vec<ConfigFile>) + Send + 'static,
    ) -> WatchHandle {
        WatchHandle(tokio::spawn(run_watch(self.into_watcher(), known, changed)))
    }

    /// Returns a watcher that reads the same directories again after each change.
    pub fn into_watcher(self) -> DirWatcher {
        let notice = Arc::new(Notify::new());
        let watch = SystemWatcher::new(&notice);
        DirWatcher { folders: Arc::new(self), watch, notice, last_stamps: Vec::new() }
    }

    fn files(&self, path: &Path) -> Result<Vec<PathBuf>, String> {
        let about = std::fs::metadata(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => "does not exist yet; it is read when it appears".to_owned(),
            _ => error.to_string(),
        })?;
        if about.is_file() {
            return Ok(vec![path.to_owned()]);
        }
        let mut found = Vec::new();
        collect_files(path, MAX_DEPTH, self.all_files, &mut found).map_err(|error| error.to_string())?;
        found.sort();
        if found.len() > MAX_FILES {
            return Err(format!("contains more than {MAX_FILES} files"));
        }
        Ok(found)
    }

    fn read_file(&self, path: PathBuf) -> ConfigFile {
        let content = match path.canonicalize() {
            Ok(real) if self.agent_writable.iter().any(|root| real.starts_with(root)) => {
                Err("is in a directory that agents may write; move it out of the workspace".to_owned())
            }
            Ok(real) if self.all_files && !self.is_below_its_folder(&path, &real) => {
                Err("is a link to a file outside of its directory".to_owned())
            }
            Ok(real) => {
                read_text(&real, self.max_file_bytes).map_err(|error| error.to_string()).and_then(|text| {
                    if let Some(FileApproval(approve)) = &self.approval {
                        approve(&real, text.as_bytes())?;
                    }
                    Ok(text)
                })
            }
            Err(error) => Err(error.to_string()),
        };
        ConfigFile { path, content }
    }

    /// Whether a file is really in the directory in which it was found: its text is served as it is.
    fn is_below_its_folder(&self, path: &Path, real: &Path) -> bool {
        let folder = self.paths.iter().find(|folder| path.starts_with(folder));
        folder.and_then(|folder| folder.canonicalize().ok()).is_some_and(|folder| real.starts_with(folder))
    }

    /// Metadata that changes with a file, obtained without reading it.
    fn stamps(&self) -> Vec<FileStamp> {
        let files = self.paths.iter().flat_map(|path| self.files(path).unwrap_or_default());
        let stamp = |path: PathBuf| match std::fs::metadata(&path) {
            Ok(about) => (path, about.modified().ok(), about.len(), about.ino()),
            Err(_) => (path, None, 0, 0),
        };
        files.map(stamp).collect()
    }
}

/// Skips hidden files: those of editors, or the versions that a mounted volume switches between.
fn collect_files(
    folder: &Path,
    depth: usize,
    all_files: bool,
    found: &mut Vec<PathBuf>,
) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if entry.file_name().as_encoded_bytes().starts_with(b".") || found.len() > MAX_FILES {
            continue;
        }
        if kind.is_dir() && depth > 0 {
            collect_files(&path, depth - 1, all_files, found)?;
        } else if (all_files || is_yaml(&path) || is_json(&path)) && path.is_file() {
            found.push(path);
        }
    }
    Ok(())
}

/// JSON is a subset of YAML. Many programs write JSON, so the reader must ignore files that are no playbook.
fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json")
}

fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

fn read_text(path: &Path, largest: u64) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(largest + 1).read_to_string(&mut text)?;
    if text.len() as u64 > largest {
        return Err(std::io::Error::other(format!("is larger than {} MiB", largest >> 20)));
    }
    Ok(text)
}

/// Directories for which only change stamps are stored.
pub struct DirWatcher {
    folders: Arc<ConfigDirs>,
    watch: SystemWatcher,
    notice: Arc<Notify>,
    last_stamps: Vec<FileStamp>,
}

impl DirWatcher {
    /// Reads everything; returns `None` when the runtime shuts down.
    pub async fn read(&mut self) -> Option<Vec<ConfigFile>> {
        self.watch.watch_paths(&self.folders.paths);
        // Stamps come first: a file written in between is read twice rather than never.
        let reader = Arc::clone(&self.folders);
        let read = tokio::task::spawn_blocking(move || (reader.stamps(), reader.read())).await;
        let (stamps, leaves) = read.ok()?;
        self.last_stamps = stamps;
        Some(leaves)
    }

    /// Waits until something may have changed since the last read.
    pub async fn changed(&self) {
        loop {
            tokio::select! {
                () = self.notice.notified() => {
                    tokio::time::sleep(DEBOUNCE).await;
                    return;
                }
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
            let looker = Arc::clone(&self.folders);
            match tokio::task::spawn_blocking(move || looker.stamps()).await {
                Ok(now) if now == self.last_stamps => {}
                _ => return,
            }
        }
    }
}

async fn run_watch(
    mut watched: DirWatcher,
    mut known: Vec<ConfigFile>,
    mut changed: impl FnMut(Vec<ConfigFile>),
) {
    while let Some(leaves) = watched.read().await {
        if leaves != known {
            known.clone_from(&leaves);
            changed(leaves);
        }
        watched.changed().await;
    }
}

/// File system notifications. Without them, only polling detects changes.
struct SystemWatcher {
    watcher: Option<RecommendedWatcher>,
    /// Device and inode of the directory watched under each path; it may be replaced by another.
    watched: HashMap<PathBuf, (u64, u64)>,
}

impl SystemWatcher {
    fn new(notice: &Arc<Notify>) -> Self {
        let notice = Arc::clone(notice);
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if event.is_ok_and(|event| is_change(event.kind)) {
                notice.notify_one();
            }
        });
        let watcher = watcher.inspect_err(|error| tracing::warn!(%error, "directories are not watched")).ok();
        Self { watcher, watched: HashMap::new() }
    }

    fn watch_paths(&mut self, paths: &[PathBuf]) {
        let Some(watcher) = &mut self.watcher else { return };
        for path in paths {
            let now = std::fs::metadata(path).ok().map(|about| (about.dev(), about.ino()));
            if self.watched.get(path) == now.as_ref() {
                continue;
            }
            if self.watched.remove(path).is_some() {
                let _ = watcher.unwatch(path);
            }
            let Some(now) = now else { continue };
            match watcher.watch(path, RecursiveMode::Recursive) {
                Ok(()) => {
                    self.watched.insert(path.clone(), now);
                }
                Err(error) => tracing::debug!(%error, path = %path.display(), "directory is not watched"),
            }
        }
    }
}

/// Read access is an event, too, and reading is what the watcher does.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::{RootSpec, WorkspaceSpec};
    use std::fs;
    use tokio::sync::mpsc;

    fn names(leaves: &[ConfigFile]) -> Vec<String> {
        leaves.iter().map(|leaf| leaf.path.file_name().unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn yaml_files_are_read_in_order_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("one/deep")).unwrap();
        fs::create_dir_all(at("one/.git")).unwrap();
        for name in
            ["one/b.yaml", "one/a.yml", "one/deep/c.json", "one/.git/d.yaml", "one/.e.yaml", "one/f.txt"]
        {
            fs::write(at(name), "x: 1").unwrap();
        }
        fs::write(at("single.yaml"), b"\xff\xfe").unwrap();
        let leaves = ConfigDirs::new(vec![at("one"), at("single.yaml"), at("none")]).read();
        assert_eq!(names(&leaves), ["a.yml", "b.yaml", "c.json", "single.yaml", "none"]);
        assert_eq!(leaves[0].content.as_deref(), Ok("x: 1"));
        assert!(leaves[3].content.is_err() && leaves[4].content.is_err());
    }

    #[test]
    fn a_file_that_is_too_large_is_named_and_left_out() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("big.yaml"), vec![b'#'; 2 << 20]).unwrap();
        let leaves = ConfigDirs::new(vec![folder.path().to_owned()]).read();
        assert!(leaves[0].content.as_ref().unwrap_err().contains("larger"), "{leaves:?}");
    }

    #[test]
    fn what_agents_may_write_is_not_read_not_even_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (work, own) = (folder.path().join("work"), folder.path().join("own"));
        fs::create_dir_all(&work).unwrap();
        fs::create_dir_all(&own).unwrap();
        fs::write(work.join("planted.yaml"), "tools: {}").unwrap();
        fs::write(own.join("fine.yaml"), "tools: {}").unwrap();
        std::os::unix::fs::symlink(work.join("planted.yaml"), own.join("link.yaml")).unwrap();
        let root = RootSpec { name: "work".to_owned(), path: work.clone(), alias_path: None, writable: true };
        let workspace =
            Workspace::open(WorkspaceSpec { roots: vec![root], ..WorkspaceSpec::default() }).unwrap();
        let leaves = ConfigDirs::new(vec![work, own]).excluding_workspace(&workspace).read();
        let read: Vec<bool> = leaves.iter().map(|leaf| leaf.content.is_ok()).collect();
        assert_eq!(names(&leaves), ["planted.yaml", "fine.yaml", "link.yaml"]);
        assert_eq!(read, [false, true, false]);
    }

    #[tokio::test]
    async fn changes_are_told_of_also_in_a_folder_that_comes_later_or_comes_again() {
        let folder = tempfile::tempdir().unwrap();
        let late = folder.path().join("late");
        let folders = ConfigDirs::new(vec![late.clone()]);
        let (tell, mut told) = mpsc::unbounded_channel();
        let known = folders.read();
        let _following = folders.watch(known, move |leaves| tell.send(leaves).unwrap());
        let mut wait = async |wanted: &dyn Fn(&[ConfigFile]) -> bool| {
            let seen = async {
                loop {
                    let leaves = told.recv().await.unwrap();
                    if wanted(&leaves) {
                        return;
                    }
                }
            };
            tokio::time::timeout(Duration::from_secs(10), seen).await.expect("no change was told of");
        };
        let holds = |leaves: &[ConfigFile], text: &str| {
            leaves.iter().any(|leaf| leaf.content.as_ref().is_ok_and(|content| content == text))
        };
        fs::create_dir(&late).unwrap();
        fs::write(late.join("a.yaml"), "one").unwrap();
        wait(&|leaves| holds(leaves, "one")).await;
        fs::write(late.join("a.yaml"), "two").unwrap();
        wait(&|leaves| holds(leaves, "two")).await;
        fs::write(late.join("new"), "three").unwrap();
        fs::rename(late.join("new"), late.join("a.yaml")).unwrap();
        wait(&|leaves| holds(leaves, "three")).await;
        fs::create_dir(late.join("sub")).unwrap();
        fs::write(late.join("sub/b.yaml"), "four").unwrap();
        wait(&|leaves| holds(leaves, "three") && holds(leaves, "four")).await;
        fs::remove_dir_all(&late).unwrap();
        wait(&|leaves| leaves.iter().all(|leaf| leaf.content.is_err())).await;
        fs::create_dir(&late).unwrap();
        fs::write(late.join("a.yaml"), "five").unwrap();
        wait(&|leaves| holds(leaves, "five")).await;
    }

    #[test]
    fn reading_is_no_change() {
        use notify::event::{CreateKind, ModifyKind, RemoveKind};
        for (kind, tells) in [
            (EventKind::Access(AccessKind::Open(AccessMode::Any)), false),
            (EventKind::Access(AccessKind::Close(AccessMode::Read)), false),
            (EventKind::Access(AccessKind::Close(AccessMode::Write)), true),
            (EventKind::Create(CreateKind::File), true),
            (EventKind::Modify(ModifyKind::Any), true),
            (EventKind::Remove(RemoveKind::Folder), true),
        ] {
            assert_eq!(is_change(kind), tells, "{kind:?}");
        }
    }
}
