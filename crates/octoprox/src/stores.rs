//! The stores of a hub, as the settings say: the one place that opens them.

use crate::app_error::AppError;
use crate::secret_key;
use crate::settings::state_dir;
use crate::settings::{Environment, Settings};
use octo_ports::Stores;
use octo_store::{Options, SealKeys};

/// Stores for reading and for what needs no credentials. Without a folder for data they end with the process.
pub fn stores(settings: &Settings) -> Result<Stores, AppError> {
    open(settings, options(settings))
}

/// The same with credentials. Every process of this machine that has the same settings shares them.
pub fn stores_with_logins(settings: &Settings, world: &Environment) -> Result<Stores, AppError> {
    with_logins(settings, world, false)
}

/// The same for a hub: one that cannot record calls does not start.
pub fn stores_of_hub(settings: &Settings, world: &Environment) -> Result<Stores, AppError> {
    state_dir(settings.state_dir.as_ref())?;
    with_logins(settings, world, true)
}

fn with_logins(settings: &Settings, world: &Environment, open_audit: bool) -> Result<Stores, AppError> {
    let credential_dir = settings.logins.store.clone();
    if credential_dir.is_none() {
        state_dir(settings.state_dir.as_ref())?;
    }
    let seal_keys: SealKeys = secret_key::sealing_keys(settings, world)?;
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
