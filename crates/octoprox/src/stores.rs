//! Opens the stores of a hub according to the settings.

pub(crate) mod audit_pruner;
mod postgres_options;
pub(crate) mod read_only_stores;
pub(crate) mod store_copy;

pub use postgres_options::{node_name, postgres_options};

use crate::app_context::block_on_current_thread;
use crate::app_error::AppError;
use crate::settings::{Environment, Settings, seal_keys, state_dir};
use octo_ports::Stores;
use octo_postgres::PostgresOptions;
use octo_store::Options;

/// Opens the stores without credentials. Without a state directory they are in memory.
pub fn stores(settings: &Settings) -> Result<Stores, AppError> {
    match postgres_options(settings, &Environment::default())? {
        Some(options) => Ok(octo_postgres::postgres(&options)?),
        None => open_sqlite(settings, options(settings)),
    }
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
        let check = || block_on_current_thread(async { Ok(octo_postgres::check(options).await?) });
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
    let durability = settings.audit.durability;
    let api_secret = settings.logins.secret.clone();
    Options { durability, api_secret, ..Options::default() }
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
