//! Locks by directory and name, so that changes of the same target run one at a time.

use super::file_fingerprint;
use super::resolve::{TargetEntry, errno_error};
use octo_model::ToolError;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Serializes writers of one process that use the same name.
static NAME_LOCKS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];

/// Locks the names of these targets, always in the same order.
pub(super) fn lock_names<'s>(
    spots: impl Iterator<Item = &'s TargetEntry>,
) -> Result<Vec<MutexGuard<'static, ()>>, ToolError> {
    let mut places = Vec::new();
    for spot in spots {
        let folder =
            file_fingerprint::of_fd(&spot.folder).map_err(|errno| errno_error(&spot.place, errno))?;
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one((folder.inode(), &spot.name));
        places.push((hash % NAME_LOCKS.len() as u64) as usize);
    }
    places.sort_unstable();
    places.dedup();
    let locks = places.into_iter().filter_map(|at| NAME_LOCKS.get(at));
    Ok(locks.map(|lock| lock.lock().unwrap_or_else(PoisonError::into_inner)).collect())
}
