//! Changes of a database file. Writes of this process are announced at once; those of others are found by polling
//! `PRAGMA data_version`, in one task per file, which runs while there are subscribers.

use crate::database::DatabaseSpec;
use crate::store::health::file_identity;
use octo_ports::{ChangeNotifier, Changes};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio_util::task::AbortOnDropHandle;

/// Maximum delay of another process's change. A check without a change takes microseconds.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) struct DatabaseChanges {
    dir: PathBuf,
    spec: &'static DatabaseSpec,
    notifier: ChangeNotifier,
    /// Held by the subscribers.
    poll_task: Mutex<Weak<AbortOnDropHandle<()>>>,
}

impl DatabaseChanges {
    pub(crate) fn new(dir: &Path, spec: &'static DatabaseSpec) -> Self {
        let (notifier, poll_task) = (ChangeNotifier::default(), Mutex::default());
        Self { dir: dir.to_owned(), spec, notifier, poll_task }
    }

    /// This process has written.
    pub(crate) fn notify(&self) {
        self.notifier.notify();
    }

    /// Needs a runtime, which polls the file.
    pub(crate) fn subscribe(&self) -> Changes {
        let changes = self.notifier.subscribe();
        let mut current = self.poll_task.lock().unwrap_or_else(PoisonError::into_inner);
        let task = current.upgrade().filter(|task| !task.is_finished()).unwrap_or_else(|| {
            let file = FileVersion {
                dir: self.dir.clone(),
                spec: self.spec,
                conn: None,
                identity: None,
                last: None,
            };
            Arc::new(AbortOnDropHandle::new(tokio::spawn(poll(file, self.notifier.clone()))))
        });
        *current = Arc::downgrade(&task);
        changes.with_listener(task)
    }
}

async fn poll(mut file: FileVersion, notifier: ChangeNotifier) {
    loop {
        let checked = tokio::task::spawn_blocking(move || (file.has_changed(), file)).await;
        let Ok((has_changed, back)) = checked else { return };
        if has_changed {
            notifier.notify();
        }
        file = back;
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// The version of a file, as one connection sees it.
struct FileVersion {
    dir: PathBuf,
    spec: &'static DatabaseSpec,
    /// For this alone, since the versions of two connections cannot be compared. Never creates the file.
    conn: Option<Connection>,
    identity: Option<(u64, u64)>,
    last: Option<i64>,
}

impl FileVersion {
    /// Blocks. The first version counts as a change: a subscriber may have read an earlier one.
    fn has_changed(&mut self) -> bool {
        let identity = file_identity(&self.dir.join(self.spec.file));
        if self.conn.is_none() || self.identity != identity {
            (self.conn, self.identity, self.last) = (self.spec.read(&self.dir).ok(), identity, None);
        }
        let read = |conn: &Connection| conn.pragma_query_value(None, "data_version", |row| row.get(0)).ok();
        let version = self.conn.as_ref().and_then(read);
        if version.is_none() {
            self.conn = None;
        }
        std::mem::replace(&mut self.last, version) != version && version.is_some()
    }
}
