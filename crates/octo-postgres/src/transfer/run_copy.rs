//! Workflow runs and their steps.

use super::state_export::{LARGE_ROWS, StateExport};
use crate::transaction::Transaction;
use crate::value::Value;
use octo_model::Principal;
use octo_ports::transfer::{RunRow, StepRow, TransferError, TransferRecord};
use octo_ports::{Port, StoreResult};
use tokio_postgres::Row;

pub(super) async fn export(export: &mut StateExport<'_>) -> Result<(), TransferError> {
    export.set_port(Port::Runs);
    let runs =
        "SELECT id, tenant, subject, path, name, text, hash, params, status, outputs, error, begun, changed,
            fence
        FROM runs ORDER BY number";
    export.send(runs, &[], LARGE_ROWS, |row| Ok([TransferRecord::Run(run_from_row(row))])).await?;
    let steps = "SELECT tenant, run, key, status, output, error, attempts FROM steps ORDER BY number";
    let step = |row: &Row| {
        Ok([TransferRecord::Step(StepRow {
            tenant: row.get(0),
            run: row.get(1),
            key: row.get(2),
            status: row.get(3),
            output: row.get(4),
            error: row.get(5),
            attempts: row.get(6),
        })])
    };
    export.send(steps, &[], LARGE_ROWS, step).await
}

fn run_from_row(row: &Row) -> RunRow {
    RunRow {
        id: row.get(0),
        owner: Principal { tenant: row.get(1), subject: row.get(2) },
        path: row.get(3),
        name: row.get(4),
        text: row.get(5),
        hash: row.get(6),
        params: row.get(7),
        status: row.get(8),
        outputs: row.get(9),
        error: row.get(10),
        begun: row.get(11),
        changed: row.get(12),
        fence: row.get(13),
    }
}

pub(super) async fn import_runs(transaction: &mut Transaction, rows: &[RunRow]) -> StoreResult<()> {
    let texts = |column: fn(&RunRow) -> &str| -> Vec<&str> { rows.iter().map(column).collect() };
    let optional = |column: fn(&RunRow) -> &Option<String>| -> Vec<Option<&str>> {
        rows.iter().map(|row| column(row).as_deref()).collect()
    };
    let numbers = |column: fn(&RunRow) -> i64| -> Vec<i64> { rows.iter().map(column).collect() };
    let insert = "INSERT INTO runs
            (id, tenant, subject, path, name, text, hash, params, status, outputs, error, begun, changed, fence)
        SELECT id, tenant, subject, path, name, text, hash, params, status, outputs, error, begun, changed, fence
        FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
                $8::text[], $9::text[], $10::text[], $11::text[], $12::int8[], $13::int8[], $14::int8[])
            WITH ORDINALITY AS item (id, tenant, subject, path, name, text, hash, params, status, outputs, error,
                begun, changed, fence, number)
        ORDER BY number";
    let values: [&dyn Value; 14] = [
        &texts(|row| &row.id),
        &texts(|row| &row.owner.tenant),
        &texts(|row| &row.owner.subject),
        &texts(|row| &row.path),
        &texts(|row| &row.name),
        &texts(|row| &row.text),
        &texts(|row| &row.hash),
        &texts(|row| &row.params),
        &texts(|row| &row.status),
        &optional(|row| &row.outputs),
        &optional(|row| &row.error),
        &numbers(|row| row.begun),
        &numbers(|row| row.changed),
        &numbers(|row| row.fence),
    ];
    transaction.execute(insert, &values).await.map(drop)
}

pub(super) async fn import_steps(transaction: &mut Transaction, rows: &[StepRow]) -> StoreResult<()> {
    let texts = |column: fn(&StepRow) -> &str| -> Vec<&str> { rows.iter().map(column).collect() };
    let optional = |column: fn(&StepRow) -> &Option<String>| -> Vec<Option<&str>> {
        rows.iter().map(|row| column(row).as_deref()).collect()
    };
    let insert = "INSERT INTO steps (tenant, run, key, status, output, error, attempts)
        SELECT tenant, run, key, status, output, error, attempts
        FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
            WITH ORDINALITY AS item (tenant, run, key, status, output, error, attempts, number)
        ORDER BY number";
    let values: [&dyn Value; 7] = [
        &texts(|row| &row.tenant),
        &texts(|row| &row.run),
        &texts(|row| &row.key),
        &texts(|row| &row.status),
        &optional(|row| &row.output),
        &optional(|row| &row.error),
        &texts(|row| &row.attempts),
    ];
    transaction.execute(insert, &values).await.map(drop)
}
