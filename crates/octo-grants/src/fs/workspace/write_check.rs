//! Access checks: protected paths, read-only roots, the state directory.

use super::Workspace;
use crate::fs::RootedPath;
use crate::fs::protected_paths::{ChangeOrigin, Protection, protected_error};
use crate::fs::resolve::TargetEntry;
use crate::fs::root::Root;
use octo_model::ToolError;
use std::path::Path;
use std::sync::Arc;

impl Workspace {
    /// Refuses a change of a protected path or of a read-only root.
    pub(in crate::fs) fn check_writable(&self, spot: &TargetEntry) -> Result<(), ToolError> {
        let root = spot.place.root();
        let whole = root.path.join(&spot.real_path);
        // A nested root has its own rules, and must not be removed with a directory around it.
        let within = |other: &&Arc<Root>| {
            other.path != root.path
                && other.path.starts_with(&root.path)
                && (whole.starts_with(&other.path) || other.path.starts_with(&whole))
        };
        let fixed = (!root.writable).then_some(root);
        let fixed = fixed.or_else(|| {
            self.roots().iter().filter(within).map(|other| &**other).find(|other| !other.writable)
        });
        if let Some(fixed) = fixed {
            return Err(ToolError::denied(format!("The root `{}` is read-only.", fixed.name))
                .hint("Write to another root, or ask the operator to make this one writable."));
        }
        self.check_path(root, &spot.real_path, &spot.place.display(), ChangeOrigin::Caller)
    }

    /// What protects a path beneath a root from the caller, globally or in the profile of this call.
    pub(in crate::fs) fn protection(&self, root: &Root, real: &Path) -> Option<Protection> {
        self.protection_from(root, real, ChangeOrigin::Caller)
    }

    fn protection_from(&self, root: &Root, real: &Path, origin: ChangeOrigin) -> Option<Protection> {
        let global = self.protected().protection(root, real, origin);
        global.or_else(|| self.profile_protected()?.protection(root, real, origin))
    }

    /// Refuses to read the state directory, if it is beneath a root.
    pub(in crate::fs) fn check_readable(&self, real: &RootedPath, told: &str) -> Result<(), ToolError> {
        if !self.protected().is_hub_data(real.root(), real.relative()) {
            return Ok(());
        }
        Err(ToolError::denied(format!("`{told}` belongs to the hub itself."))
            .hint("Use another directory; tools cannot access the hub's state directory."))
    }

    pub(in crate::fs) fn check_path(
        &self,
        root: &Root,
        real: &Path,
        told: &str,
        origin: ChangeOrigin,
    ) -> Result<(), ToolError> {
        match self.protection_from(root, real, origin) {
            None => Ok(()),
            Some(protection) => Err(protected_error(told, &protection)),
        }
    }
}
