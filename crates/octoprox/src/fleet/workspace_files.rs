//! Which files this node has: those that another worker must have, too, to take over.

use crate::settings::Settings;
use octo_fabric::ServedFiles;
use octo_model::sha256_hex;
use octo_ports::{FleetRecords, StoreResult};
use rustix::fs::{AtFlags, CWD, StatxFlags, statfs, statx};
use std::path::Path;
use std::sync::Arc;

/// Names of the records; the name of the workspace follows.
const PREFIX: &str = "workspace-files/";

/// The files of this worker, and what hubs that share a database know of the files of the workspace.
pub struct WorkspaceFiles {
    pub served: ServedFiles,
    records: Option<Arc<dyn FleetRecords>>,
    record: String,
}

impl WorkspaceFiles {
    pub fn new(
        settings: &Settings,
        takes_over: bool,
        records: Option<Arc<dyn FleetRecords>>,
    ) -> Option<Arc<Self>> {
        let named = settings.fleet.workspace_files.clone().map(|name| format!("name {name}"));
        let id = named.or_else(|| directory_id(settings.workspace.as_deref()?))?;
        let served = ServedFiles { id: sha256_hex(id.as_bytes()), takes_over };
        let record = format!("{PREFIX}{}", settings.fleet.workspace);
        Some(Arc::new(Self { served, records, record }))
    }

    /// Whether the files on record are these, or may be followed by them.
    pub async fn are_on_record(&self) -> StoreResult<bool> {
        let Some(records) = &self.records else { return Ok(true) };
        let known = records.with_prefix(&self.record).await?;
        let known = known.iter().find(|(name, _)| *name == self.record);
        Ok(known.is_none_or(|(_, id)| self.served.may_follow(id)))
    }

    /// Puts these files on record, once this node may serve. Returns false if others are.
    pub async fn put_on_record(&self) -> StoreResult<bool> {
        let Some(records) = &self.records else { return Ok(true) };
        if self.served.takes_over {
            return records.put(&self.record, &self.served.id).await.map(|()| true);
        }
        Ok(records.add(&self.record, &self.served.id).await? == self.served.id)
    }
}

/// The number of the directory in its file system, and when it was made: the same wherever a shared file system is
/// mounted, and another one for a copy. Where the system does not know the time, the kind of file system.
fn directory_id(directory: &Path) -> Option<String> {
    let wanted = StatxFlags::INO | StatxFlags::BTIME;
    let status = statx(CWD, directory, AtFlags::empty(), wanted).ok()?;
    if status.stx_mask & StatxFlags::BTIME.bits() != 0 {
        let made = status.stx_btime;
        return Some(format!("inode {} of {}.{:09}", status.stx_ino, made.tv_sec, made.tv_nsec));
    }
    let kind = statfs(directory).ok()?.f_type;
    Some(format!("inode {} of kind {kind}", status.stx_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_keeps_its_id_and_a_copy_has_another() {
        let temp = tempfile::tempdir().unwrap();
        let [one, copy] = ["one", "copy"].map(|name| temp.path().join(name));
        std::fs::create_dir(&one).unwrap();
        let id = directory_id(&one).unwrap();
        std::fs::write(one.join("file"), "x").unwrap();
        let moved = temp.path().join("moved");
        std::fs::rename(&one, &moved).unwrap();
        assert_eq!(directory_id(&moved).unwrap(), id);
        let link = temp.path().join("link");
        std::os::unix::fs::symlink(&moved, &link).unwrap();
        assert_eq!(directory_id(&link).unwrap(), id, "another way to the same directory");
        let copied = std::process::Command::new("cp").arg("-a").arg(&moved).arg(&copy).status().unwrap();
        assert!(copied.success());
        assert_ne!(directory_id(&copy).unwrap(), id);
        assert_eq!(directory_id(&temp.path().join("none")), None);
    }

    #[tokio::test]
    async fn the_first_files_stay_on_record_until_a_person_says_otherwise() {
        let records = Some(octo_ports::in_memory::fleet_records());
        let files = |name: &str, takes_over| {
            let mut settings = Settings::default();
            settings.fleet.workspace_files = Some(name.to_owned());
            WorkspaceFiles::new(&settings, takes_over, records.clone()).unwrap()
        };
        let (one, two, taker) = (files("one", false), files("two", false), files("two", true));
        assert!(two.are_on_record().await.unwrap(), "nothing is on record");
        assert!(one.put_on_record().await.unwrap());
        assert!(one.are_on_record().await.unwrap() && !two.are_on_record().await.unwrap());
        assert!(!two.put_on_record().await.unwrap());
        assert!(taker.are_on_record().await.unwrap() && one.put_on_record().await.unwrap());
        assert!(taker.put_on_record().await.unwrap());
        assert!(two.are_on_record().await.unwrap() && !one.put_on_record().await.unwrap());
    }
}
