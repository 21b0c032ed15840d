//! Opens the stores of a hub according to the settings.

pub(crate) mod audit_pruner;
pub(crate) mod call_history;
mod digest_key;
mod postgres_options;
pub(crate) mod read_only_stores;
pub(crate) mod shared_revocations;
pub(crate) mod store_copy;
pub(crate) mod text_model;

pub use digest_key::DigestKey;
pub use postgres_options::{node_name, postgres_options};

use crate::app_context::block_on_current_thread;
use crate::app_error::AppError;
use crate::settings::{Environment, Settings, seal_keys, state_dir};
use octo_ports::Stores;
use octo_postgres::PostgresOptions;
use octo_store::Options;

/// Opens the stores without credentials, also those of loaded APIs. Without a state directory they are in memory.
pub fn stores(settings: &Settings) -> Result<Stores, AppError> {
    match postgres_options(settings, &Environment::default())? {
        Some(options) => Ok(octo_postgres::postgres(&options)?),
        None => local_stores(settings),
    }
}

/// Opens the stores of the state directory, also if the settings name a database.
pub fn local_stores(settings: &Settings) -> Result<Stores, AppError> {
    open_sqlite(settings, options(settings))
}

/// Opens the stores with credentials, shared by all processes of this machine with the same settings.
pub fn stores_with_logins(settings: &Settings, world: &Environment) -> Result<Stores, AppError> {
    match postgres_options(settings, world)? {
        Some(options) => Ok(octo_postgres::postgres(&options)?),
        None => open_with_logins(settings, world, false),
    }
}

/// Opens the stores for a hub, which does not start if it cannot record calls.
pub fn stores_of_hub(settings: &Settings, world: &Environment) -> Result<Stores, AppError> {
    state_dir(settings.state_dir.as_ref())?;
    match postgres_options(settings, world)? {
        Some(options) => {
            check(&options)?;
            Ok(octo_postgres::postgres(&options)?)
        }
        None => open_with_logins(settings, world, true),
    }
}

/// Checks that the database can be used, on a thread of its own: the caller may be on a runtime.
fn check(options: &PostgresOptions) -> Result<(), AppError> {
    std::thread::scope(|scope| {
        let check = || block_on_current_thread(async { Ok(octo_postgres::check(options).await.map(drop)?) });
        scope.spawn(check).join().unwrap_or_else(|_| Err(AppError::new("The check of the database failed.")))
    })
}

fn open_with_logins(settings: &Settings, world: &Environment, open_audit: bool) -> Result<Stores, AppError> {
    if settings.logins.store.is_none() {
        state_dir(settings.state_dir.as_ref())?;
    }
    open_sqlite(settings, Options { open_audit, ..sqlite_options(settings, world)? })
}

/// Options of the state directory, with the keys of credentials.
fn sqlite_options(settings: &Settings, world: &Environment) -> Result<Options, AppError> {
    let seal_keys = seal_keys(&settings.logins, world)?;
    Ok(Options { seal_keys, credential_dir: settings.logins.store.clone(), ..options(settings) })
}

fn options(settings: &Settings) -> Options {
    Options { durability: settings.audit.durability, ..Options::default() }
}

fn open_sqlite(settings: &Settings, options: Options) -> Result<Stores, AppError> {
    match (&settings.state_dir, options.credential_dir.clone()) {
        (Some(folder), _) => Ok(octo_store::sqlite(folder, options)?),
        (None, Some(folder)) => {
            let kept = octo_store::sqlite(&folder, options)?;
            Ok(Stores { credentials: kept.credentials, leases: kept.leases, ..Stores::in_memory() })
        }
        (None, None) => Ok(Stores::in_memory()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_model::{Caller, Secret};
    use octo_ports::apis::StoredApi;

    #[tokio::test]
    async fn credentials_of_apis_are_sealed_with_the_secret_of_the_file() {
        let temp = tempfile::tempdir().unwrap();
        let (state, file) = (temp.path().join("state"), temp.path().join("secret"));
        let (ada, world) = (Caller::named("ada"), Environment::default());
        let mut settings = Settings { state_dir: Some(state.clone()), ..Settings::default() };
        settings.logins.secret_file = Some(file.clone());
        std::fs::write(&file, "the secret of a file\n").unwrap();
        let api = StoredApi {
            name: "x".into(),
            revision: "1".into(),
            settings: "{}".into(),
            secret: Some(Secret::new("t0p-s3cret")),
        };
        let stores = || stores_of_hub(&settings, &world).unwrap().apis;
        stores().put(&ada, api.clone(), "the document".into()).await.unwrap();
        assert_eq!(stores().find(&ada, "x").await.unwrap().as_ref(), Some(&api));
        assert!(!state.join("seal.key").exists(), "the key would be beside what it seals");
        std::fs::write(&file, "another secret of a file\n").unwrap();
        assert!(stores().find(&ada, "x").await.is_err());
    }
}
