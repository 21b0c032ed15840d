//! Health checks of the database.

use crate::database::Database;
use crate::{PostgresError, PostgresOptions};
use octo_model::BoxFuture;
use octo_ports::{ConnectionUse, HealthCheck, HealthProblem};
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct PostgresHealth(pub(crate) Arc<Database>);

impl HealthCheck for PostgresHealth {
    fn check_space(&self) -> BoxFuture<'_, Result<Option<u64>, HealthProblem>> {
        Box::pin(async {
            let problem =
                |error: PostgresError| HealthProblem { reason: error.to_string(), hint: error.hint() };
            self.0.check().await.map(|_| None).map_err(problem)
        })
    }

    fn connections(&self) -> Option<ConnectionUse> {
        Some(self.0.connections())
    }

    /// The server checks its own files.
    fn check_integrity(&self, _: Duration) -> BoxFuture<'_, Result<bool, HealthProblem>> {
        Box::pin(async { Ok(false) })
    }
}

/// Checks that the database can be reached, and that its tables exist and can be written. Returns their version.
pub async fn check(options: &PostgresOptions) -> Result<i64, PostgresError> {
    Database::new(options)?.check().await
}
