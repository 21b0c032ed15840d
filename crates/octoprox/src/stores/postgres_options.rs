//! Options of the database that hubs share, from the settings.

use crate::app_error::AppError;
use crate::settings::{Environment, Settings, seal_keys};
use crate::toolboxes::net_spec;
use octo_grants::Net;
use octo_postgres::{PostgresOptions, Schema};

/// Holds the host name, also in a container.
const HOST_NAME_FILE: &str = "/proc/sys/kernel/hostname";

/// Returns the options, if the settings name a database.
pub fn postgres_options(
    settings: &Settings,
    world: &Environment,
) -> Result<Option<PostgresOptions>, AppError> {
    let store = &settings.store;
    let Some(dsn) = store.postgres.clone() else { return Ok(None) };
    let keys = seal_keys(&settings.logins, world)?;
    // The check of the settings requires a secret or its file.
    let secret = keys.secret.ok_or_else(|| AppError::invalid("store.postgres: requires `logins.secret`."))?;
    let node = node_name(settings)?;
    Ok(Some(PostgresOptions {
        schema: Schema::parse(&store.schema)?,
        previous_secrets: keys.previous,
        net: Net::new(net_spec(settings))?,
        max_connections: store.max_connections,
        ..PostgresOptions::new(dsn, secret, node)
    }))
}

/// Returns the name of this node, which is unique among those that share a database or a fleet.
pub fn node_name(settings: &Settings) -> Result<String, AppError> {
    match &settings.store.node {
        Some(node) => Ok(node.clone()),
        None => Ok(std::fs::read_to_string(HOST_NAME_FILE)?.trim().to_owned()),
    }
}
