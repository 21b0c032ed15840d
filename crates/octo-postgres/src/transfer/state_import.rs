//! All records of a state, written in one transaction. Rows of the same kind are written together.

use super::audit_copy::AuditImport;
use super::credential_copy::CredentialImport;
use super::memory_copy::MemoryImport;
use super::result_copy::ResultImport;
use super::{api_copy, lease_copy, listing_copy, pin_copy, run_copy};
use crate::database::Database;
use crate::transaction::Transaction;
use octo_ports::transfer::{StateKind, TransferError, TransferRecord};
use octo_ports::{Port, Seal, StoreResult};

/// Maximum rows per statement.
const MAX_BATCH_ROWS: usize = 1_000;
/// A batch with so many bytes is written.
const MAX_BATCH_BYTES: usize = 4 << 20;

/// Tables whose rows make the target unusable, by kind.
const KIND_TABLES: [(&str, StateKind); 11] = [
    ("audit", StateKind::AuditRecords),
    ("audit_chains", StateKind::AuditRecords),
    ("results", StateKind::Results),
    ("pins", StateKind::Pins),
    ("seen_pins", StateKind::Pins),
    ("listings", StateKind::Listings),
    ("apis", StateKind::Apis),
    ("runs", StateKind::Runs),
    ("credentials", StateKind::Credentials),
    ("pending_logins", StateKind::PendingLogins),
    ("memory_entities", StateKind::Entities),
];
/// Tables whose rows mean nothing without others.
const SECONDARY_TABLES: [&str; 4] = ["credential_revisions", "memory_kinds", "memory_owners", "pin_servers"];

pub(super) struct StateImport {
    transaction: Transaction,
    batch: Vec<TransferRecord>,
    batch_bytes: usize,
    last_token: i64,
    audit: AuditImport,
    results: ResultImport,
    api_seal: Seal,
    credentials: CredentialImport,
    memories: MemoryImport,
}

/// The rows of a kind in a batch.
macro_rules! rows {
    ($batch:expr, $kind:ident) => {
        $batch
            .into_iter()
            .filter_map(|record| match record {
                TransferRecord::$kind(row) => Some(row),
                _ => None,
            })
            .collect::<Vec<_>>()
    };
}

impl StateImport {
    /// Keeps writers out until the end, and refuses if a hub works or if there are records. The keys are for APIs and
    /// for credentials.
    pub(super) async fn begin(
        database: &Database,
        node: &str,
        seals: (Seal, Seal),
    ) -> Result<Self, TransferError> {
        let mut transaction = database.begin_copy(false).await?;
        let tables: Vec<&str> = KIND_TABLES.iter().map(|(table, _)| *table).chain(SECONDARY_TABLES).collect();
        let lock = format!("LOCK TABLE {} IN EXCLUSIVE MODE", tables.join(", "));
        transaction.execute(&lock, &[]).await?;
        lease_copy::check_unused(&mut transaction).await?;
        let mut kinds = Vec::new();
        for (table, kind) in KIND_TABLES {
            let condition = if table == "audit_chains" { "WHERE seq > 0" } else { "" };
            let find = format!("SELECT FROM {table} {condition} LIMIT 1");
            if transaction.query_opt(&find, &[]).await?.is_some() {
                kinds.push(kind);
            }
        }
        kinds.dedup();
        if !kinds.is_empty() {
            return Err(TransferError::NotEmpty(kinds));
        }
        for table in SECONDARY_TABLES.iter().chain(&["audit_chains"]) {
            transaction.execute(&format!("DELETE FROM {table}"), &[]).await?;
        }
        let (api_seal, credential_seal) = seals;
        Ok(Self {
            transaction,
            batch: Vec::new(),
            batch_bytes: 0,
            last_token: 0,
            audit: AuditImport::new(node),
            results: ResultImport::default(),
            api_seal,
            credentials: CredentialImport::new(credential_seal),
            memories: MemoryImport::default(),
        })
    }

    pub(super) async fn add(&mut self, record: TransferRecord) -> Result<(), TransferError> {
        let kind = std::mem::discriminant(&record);
        let is_other = self.batch.first().is_some_and(|first| std::mem::discriminant(first) != kind);
        if is_other || self.batch.len() >= MAX_BATCH_ROWS || self.batch_bytes >= MAX_BATCH_BYTES {
            self.flush().await?;
        }
        self.batch_bytes += record.size();
        self.batch.push(record);
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), TransferError> {
        self.batch_bytes = 0;
        let batch = std::mem::take(&mut self.batch);
        let Some(first) = batch.first() else { return Ok(()) };
        let port = first.port();
        self.transaction.set_port(port);
        match port {
            Port::Memory => Ok(self.write_memory(batch).await?),
            Port::AuditReader => self.write_audit(batch).await,
            _ => Ok(self.write_other(batch).await?),
        }
    }

    async fn write_audit(&mut self, batch: Vec<TransferRecord>) -> Result<(), TransferError> {
        let (audit, transaction) = (&mut self.audit, &mut self.transaction);
        match batch.first() {
            Some(TransferRecord::ChainStart(_)) => {
                rows!(batch, ChainStart).into_iter().try_for_each(|start| audit.start(start))
            }
            Some(TransferRecord::ChainRecord(_)) => {
                Ok(audit.add(transaction, &rows!(batch, ChainRecord)).await?)
            }
            _ => {
                for head in rows!(batch, ChainEnd) {
                    audit.end(transaction, head).await?;
                }
                Ok(())
            }
        }
    }

    async fn write_other(&mut self, batch: Vec<TransferRecord>) -> StoreResult<()> {
        let transaction = &mut self.transaction;
        match batch.first() {
            Some(TransferRecord::LeaseToken(_)) => {
                let last = rows!(batch, LeaseToken).into_iter().max().unwrap_or_default();
                self.last_token = self.last_token.max(last.cast_signed());
                Ok(())
            }
            Some(TransferRecord::Result(_)) => self.results.start(transaction, rows!(batch, Result)).await,
            Some(TransferRecord::ResultChunk(_)) => {
                self.results.add(transaction, &rows!(batch, ResultChunk)).await
            }
            Some(TransferRecord::PinServer(_)) => {
                pin_copy::import_servers(transaction, &rows!(batch, PinServer)).await
            }
            Some(TransferRecord::Pin(_)) => pin_copy::import_pins(transaction, &rows!(batch, Pin)).await,
            Some(TransferRecord::SeenPin(_)) => {
                pin_copy::import_seen(transaction, &rows!(batch, SeenPin)).await
            }
            Some(TransferRecord::Listing(_)) => {
                listing_copy::import(transaction, &rows!(batch, Listing)).await
            }
            Some(TransferRecord::Api(_)) => {
                api_copy::import(transaction, &self.api_seal, rows!(batch, Api)).await
            }
            Some(TransferRecord::Run(_)) => {
                let runs = rows!(batch, Run);
                self.last_token = runs.iter().map(|run| run.fence).fold(self.last_token, i64::max);
                run_copy::import_runs(transaction, &runs).await
            }
            Some(TransferRecord::Step(_)) => run_copy::import_steps(transaction, &rows!(batch, Step)).await,
            _ => self.credentials.add(transaction, batch).await,
        }
    }

    async fn write_memory(&mut self, batch: Vec<TransferRecord>) -> StoreResult<()> {
        let (memories, transaction) = (&mut self.memories, &mut self.transaction);
        match batch.first() {
            Some(TransferRecord::MemoryOwner(_)) => {
                for owner in rows!(batch, MemoryOwner) {
                    memories.start(transaction, &owner).await?;
                }
                Ok(())
            }
            Some(TransferRecord::Kind(_)) => memories.kinds(transaction, rows!(batch, Kind)).await,
            Some(TransferRecord::Entity(_)) => memories.entities(transaction, rows!(batch, Entity)).await,
            Some(TransferRecord::FormerKind(_)) => {
                memories.former_kinds(transaction, rows!(batch, FormerKind)).await
            }
            Some(TransferRecord::Fact(_)) => memories.facts(transaction, rows!(batch, Fact)).await,
            _ => memories.links(transaction, rows!(batch, Link)).await,
        }
    }

    /// Commits everything.
    pub(super) async fn finish(mut self) -> Result<(), TransferError> {
        self.flush().await?;
        self.memories.end(&mut self.transaction).await?;
        lease_copy::import(&mut self.transaction, self.last_token).await?;
        Ok(self.transaction.commit().await?)
    }
}
