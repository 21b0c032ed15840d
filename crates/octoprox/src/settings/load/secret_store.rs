//! Stored secrets that settings refer to as `${secret:NAME}`. They are sealed in the credential store.

use crate::app_error::AppError;
use crate::settings::Environment;
use crate::settings::load::seal_keys::seal_keys;
use crate::settings::load::state_dir::state_dir;
use crate::settings::model::section_models::Logins;
use octo_model::Secret;
use octo_ports::{Credentials, Owner, Slot, StoreResult};
use octo_store::Options;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Prefix of secrets among the servers of the credential store. No server name contains a colon.
const SLOT_PREFIX: &str = "secret:";
/// A credential needs an issuer; secrets of the user have none.
const ISSUER: &str = "octoprox";
pub const MAX_SECRET_NAME_LEN: usize = 128;

/// The secrets of a user. All methods block, and can be called inside a runtime.
pub struct SecretStore {
    credentials: Credentials,
    dir: PathBuf,
}

impl SecretStore {
    /// Opens the store that logins use.
    pub fn open(logins: &Logins, state: Option<&PathBuf>, world: &Environment) -> Result<Self, AppError> {
        let dir = logins.store.clone().map_or_else(|| state_dir(state), Ok)?;
        let options = Options { seal_keys: seal_keys(logins, world)?, ..Options::default() };
        let credentials = octo_store::sqlite(&dir, options)?.credentials;
        Ok(Self { credentials, dir })
    }

    /// Returns the stored secrets among these names. Creates nothing.
    pub fn get_all<'a>(
        &self,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<BTreeMap<String, Secret>, AppError> {
        if !self.dir.is_dir() {
            return Ok(BTreeMap::new());
        }
        let names: Vec<&str> = names.into_iter().collect();
        run(async {
            let mut found = BTreeMap::new();
            for name in names {
                let stored = self.credentials.find(&slot(name)).await?;
                found.extend(stored.map(|stored| (name.to_owned(), stored.secret)));
            }
            Ok(found)
        })
    }

    /// Stores a secret, replacing one of the same name.
    pub fn set(&self, name: &str, value: Secret) -> Result<(), AppError> {
        run(async { self.credentials.put(&slot(name), value, None).await.map(drop) })
    }

    /// Removes a secret; `false` if there was none.
    pub fn remove(&self, name: &str) -> Result<bool, AppError> {
        if !self.dir.is_dir() {
            return Ok(false);
        }
        run(self.credentials.remove(&slot(name)))
    }

    /// Returns the names of all secrets, sorted.
    pub fn names(&self) -> Result<Vec<String>, AppError> {
        if !self.dir.is_dir() {
            return Ok(Vec::new());
        }
        let slots = run(self.credentials.slots())?;
        let secrets = slots.into_iter().filter(is_secret_slot);
        let mut names: Vec<String> =
            secrets.filter_map(|slot| slot.server.strip_prefix(SLOT_PREFIX).map(str::to_owned)).collect();
        names.sort();
        Ok(names)
    }
}

/// Returns whether a credential is a stored secret, and not a login.
pub fn is_secret_slot(slot: &Slot) -> bool {
    slot.owner == Owner::Shared && slot.issuer == ISSUER && slot.server.starts_with(SLOT_PREFIX)
}

fn slot(name: &str) -> Slot {
    Slot::new(Owner::Shared, format!("{SLOT_PREFIX}{name}"), ISSUER)
}

/// Returns whether a secret can have this name: that of a variable, also with dots and hyphens.
pub fn is_secret_store_name(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    (1..=MAX_SECRET_NAME_LEN).contains(&name.len())
        && name.chars().all(inner)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
}

/// Waits for the store on a thread with a runtime of its own: settings are also loaded inside a runtime.
fn run<T: Send>(work: impl Future<Output = StoreResult<T>> + Send) -> Result<T, AppError> {
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(work).map_err(AppError::from)
        });
        running.join().unwrap_or_else(|_| Err(AppError::new("The secrets could not be read.")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(dir: &std::path::Path) -> SecretStore {
        SecretStore::open(&Logins::default(), Some(&dir.to_owned()), &Environment::default()).unwrap()
    }

    #[test]
    fn secrets_are_sealed_listed_and_removed() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("state");
        assert_eq!((open(&dir).names().unwrap(), open(&dir).remove("A").unwrap()), (vec![], false));
        assert!(open(&dir).get_all(["A"]).unwrap().is_empty() && !dir.exists(), "reading creates nothing");
        open(&dir).set("B_KEY", Secret::new("canary-1")).unwrap();
        open(&dir).set("A", Secret::new("canary-2")).unwrap();
        open(&dir).set("A", Secret::new("canary-3")).unwrap();
        assert_eq!(open(&dir).names().unwrap(), ["A", "B_KEY"]);
        let all = open(&dir).get_all(["A", "B_KEY", "C"]).unwrap();
        assert_eq!(all.values().map(Secret::expose).collect::<Vec<_>>(), ["canary-3", "canary-1"]);
        for file in std::fs::read_dir(&dir).unwrap() {
            let bytes = std::fs::read(file.unwrap().path()).unwrap();
            assert!(!String::from_utf8_lossy(&bytes).contains("canary"));
        }
        assert!(open(&dir).remove("A").unwrap());
        assert_eq!(open(&dir).names().unwrap(), ["B_KEY"]);
    }

    #[tokio::test]
    async fn the_store_can_be_used_inside_a_runtime() {
        let temp = tempfile::tempdir().unwrap();
        open(temp.path()).set("A", Secret::new("x")).unwrap();
        assert_eq!(open(temp.path()).names().unwrap(), ["A"]);
    }

    #[test]
    fn names_of_secrets() {
        for (name, valid) in [
            ("GITHUB_TOKEN", true),
            ("a.b-c", true),
            ("_x", true),
            ("", false),
            ("-x", false),
            ("a b", false),
            ("a:b", false),
            ("ü", false),
        ] {
            assert_eq!(is_secret_store_name(name), valid, "{name}");
        }
    }
}
