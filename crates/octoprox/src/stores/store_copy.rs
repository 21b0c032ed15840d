//! Copies all state between the state directory and the shared database.

use super::{postgres_options, sqlite_options};
use crate::app_error::AppError;
use crate::process::running_hubs::running_hubs;
use crate::settings::{Environment, Settings, is_secret_slot, state_dir};
use clap::ValueEnum;
use octo_ports::StoreError;
use octo_ports::transfer::{TransferCounts, TransferError, transfer};
use octo_postgres::PostgresOptions;
use octo_store::Options;
use std::path::{Path, PathBuf};

/// Where the copy is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CopyTarget {
    /// The shared database, `store.postgres`
    Postgres,
    /// The state directory, `state_dir`
    Sqlite,
}

pub struct StoreCopy {
    pub target: CopyTarget,
    pub dir: PathBuf,
    pub database: PostgresOptions,
    options: Options,
}

impl StoreCopy {
    pub fn new(settings: &Settings, world: &Environment, target: CopyTarget) -> Result<Self, AppError> {
        let dir = state_dir(settings.state_dir.as_ref())?;
        let database = postgres_options(settings, world)?.ok_or_else(|| {
            AppError::invalid(
                "store.postgres: not set. Set it, or OCTOPROX_STORE_POSTGRES, to the connection string of the database, for a copy in either direction.",
            )
        })?;
        Ok(Self { target, dir, database, options: sqlite_options(settings, world)? })
    }

    /// Copies everything or nothing.
    pub async fn run(&self) -> Result<TransferCounts, AppError> {
        check_hubs(&self.dir)?;
        octo_postgres::check(&self.database).await?;
        let (dir, options, database) = (self.dir.as_path(), &self.options, &self.database);
        let copied = match self.target {
            CopyTarget::Postgres => {
                let export = |to| octo_store::export_state(dir, options, is_secret_slot, to);
                transfer(export, |from| octo_postgres::import_state(database, from)).await
            }
            CopyTarget::Sqlite => {
                let export = |to| octo_postgres::export_state(database, to);
                transfer(export, |from| octo_store::import_state(dir, options, is_secret_slot, from)).await
            }
        };
        copied.map_err(|error| self.app_error(error))
    }

    fn app_error(&self, error: TransferError) -> AppError {
        let remedy = match (&error, self.target) {
            (TransferError::InUse(_), _) => {
                "Stop all hubs and copy again. A lease of a hub that was killed ends after five minutes."
                    .to_owned()
            }
            (TransferError::NotEmpty(_), CopyTarget::Postgres) => {
                "Set store.schema, or OCTOPROX_STORE_SCHEMA, to a new name, run `octoprox migrate` and copy again."
                    .to_owned()
            }
            (TransferError::NotEmpty(_), CopyTarget::Sqlite) => format!(
                "Move the *.db files and the folder `spills` in {} elsewhere, or set state_dir to a new directory, and copy again.",
                self.dir.display()
            ),
            (TransferError::ChainName(_), _) => {
                "Set store.node, or OCTOPROX_STORE_NODE, to another name and copy again.".to_owned()
            }
            (TransferError::Store(error), _) => return store_error(error.clone()),
            (TransferError::Interrupted, _) => "Copy again.".to_owned(),
        };
        AppError::new(format!("{error} {remedy} Nothing was copied."))
    }
}

/// An error of a store, with its reason.
fn store_error(error: StoreError) -> AppError {
    match error {
        StoreError::Unavailable { why, .. } => AppError::new(format!("{why}. Nothing was copied.")),
        other => AppError::from(other),
    }
}

/// Refuses while a hub of this machine runs.
fn check_hubs(dir: &Path) -> Result<(), AppError> {
    match running_hubs(dir)?.first() {
        Some(hub) => Err(AppError::new(format!(
            "A hub is running, process {}. Stop all hubs and copy again. Nothing was copied.",
            hub.pid.as_raw_nonzero()
        ))),
        None => Ok(()),
    }
}
