//! The audit log as the hub writes it.

use super::audit_partitions::Month;
use super::audit_writer::AuditWriter;
use super::chain_writer::ChainWriter;
use crate::connector::Connector;
use crate::database::Database;
use crate::transaction::Scope;
use crate::value::Value;
use crate::{PostgresError, PostgresOptions};
use aws_lc_rs::rand;
use octo_model::BoxFuture;
use octo_ports::{
    ArgumentKey, AuditBacklog, AuditLog, CallEnded, CallStarted, Port, StoreError, StoreResult,
};
use std::sync::Arc;
use std::time::SystemTime;

/// Maximum bytes of the name of a chain.
const MAX_CHAIN_LEN: usize = 200;

pub(crate) struct PostgresAuditLog {
    pub(super) writer: AuditWriter,
    database: Arc<Database>,
    arguments: ArgumentKey,
}

/// Microseconds since 1970.
pub(crate) fn now_micros() -> i64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_micros() as i64)
}

impl PostgresAuditLog {
    pub(crate) fn new(database: Arc<Database>, options: &PostgresOptions) -> Result<Self, PostgresError> {
        let node = options.node.as_str();
        if node.is_empty() || node.len() > MAX_CHAIN_LEN || node.contains(char::is_control) {
            return Err(PostgresError::NodeName(node.to_owned()));
        }
        let mut id = [0; 8];
        rand::fill(&mut id).map_err(|_| PostgresError::Refused("no random bytes".to_owned()))?;
        let chain = ChainWriter::new(Connector::new(options)?, options.schema.as_str(), node, id);
        let arguments = ArgumentKey::derive(options.secret.bytes());
        Ok(Self { writer: AuditWriter::start(chain)?, database, arguments })
    }

    /// Checks that there is a partition for new records.
    async fn check_partition(&self) -> StoreResult<()> {
        let table = Month::of(now_micros()).table();
        let values: [&dyn Value; 1] = [&table];
        let check = "SELECT to_regclass(quote_ident($1)) IS NOT NULL
                     OR coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)";
        let rows = self.database.read(Port::Audit, Scope::AllTenants, check, &values).await?;
        if rows.first().is_some_and(|row| row.get(0)) {
            return Ok(());
        }
        let why = format_args!("the partition `{table}` does not exist and cannot be created");
        Err(StoreError::unavailable(Port::Audit, why))
    }
}

impl AuditLog for PostgresAuditLog {
    fn open(&self, opening: CallStarted) -> BoxFuture<'_, StoreResult<()>> {
        Box::pin(self.writer.queue.record_start(now_micros(), opening))
    }

    fn close(&self, closing: CallEnded) {
        self.writer.queue.record_end(now_micros(), &closing);
    }

    fn flush(&self) -> BoxFuture<'_, StoreResult<()>> {
        Box::pin(self.writer.queue.flush())
    }

    fn backlog(&self) -> AuditBacklog {
        self.writer.queue.backlog()
    }

    fn check(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            self.check_partition().await.map_err(|error| match error {
                StoreError::Unavailable { why, .. } => why,
                other => other.to_string(),
            })
        })
    }

    fn fingerprint(&self, arguments: &[u8]) -> String {
        self.arguments.fingerprint(arguments)
    }
}
