//! Opens the stores of a hub according to the settings.

pub(crate) mod audit_pruner;
pub(crate) mod read_only_stores;

use crate::app_error::AppError;
use crate::settings::{Environment, Settings, seal_keys, state_dir};
use octo_ports::Stores;
use octo_store::{Options, SealKeys};

/// Opens the stores without credentials. Without a state directory they are in memory.
pub fn stores(settings: &Settings) -> Result<Stores, AppError> {
    open(settings, options(settings))
}

/// Opens the stores with credentials, shared by all processes of this machine with the same settings.
pub fn stores_with_logins(settings: &Settings, world: &Environment) -> Result<Stores, AppError> {
    with_logins(settings, world, false)
}

/// Opens the stores for a hub, which does not start if it cannot record calls.
pub fn stores_of_hub(settings: &Settings, world: &Environment) -> Result<Stores, AppError> {
    state_dir(settings.state_dir.as_ref())?;
    with_logins(settings, world, true)
}

fn with_logins(settings: &Settings, world: &Environment, open_audit: bool) -> Result<Stores, AppError> {
    let credential_dir = settings.logins.store.clone();
    if credential_dir.is_none() {
        state_dir(settings.state_dir.as_ref())?;
    }
    let seal_keys: SealKeys = seal_keys(&settings.logins, world)?;
    open(settings, Options { seal_keys, credential_dir, open_audit, ..options(settings) })
}

fn options(settings: &Settings) -> Options {
    let durability = settings.audit.durability;
    let api_secret = settings.logins.secret.clone();
    Options { durability, api_secret, ..Options::default() }
}

fn open(settings: &Settings, options: Options) -> Result<Stores, AppError> {
    match (&settings.state_dir, options.credential_dir.clone()) {
        (Some(folder), _) => Ok(octo_store::sqlite(folder, options)?),
        (None, Some(folder)) => {
            let kept = octo_store::sqlite(&folder, options)?;
            Ok(Stores { credentials: kept.credentials, leases: kept.leases, ..Stores::in_memory() })
        }
        (None, None) => Ok(Stores::in_memory()),
    }
}
