//! Workflow runs and their steps.

use super::copy_error::CopyResult;
use octo_model::Principal;
use octo_ports::transfer::{RecordSender, RunRow, StepRow, TransferRecord};
use rusqlite::{Connection, Row, params};

pub(super) fn export(conn: &Connection, to: &RecordSender) -> CopyResult<()> {
    let mut statement = conn.prepare(
        "SELECT id, tenant, subject, path, name, text, hash, params, status, outputs, error, begun, changed, fence
         FROM runs ORDER BY number",
    )?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        to.blocking_send(TransferRecord::Run(run_from_row(row)?))?;
    }
    let mut statement = conn.prepare(
        "SELECT runs.tenant, run, key, steps.status, output, steps.error, attempts
         FROM steps CROSS JOIN runs ON runs.id = steps.run ORDER BY steps.number",
    )?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        let step = StepRow {
            tenant: row.get(0)?,
            run: row.get(1)?,
            key: row.get(2)?,
            status: row.get(3)?,
            output: row.get(4)?,
            error: row.get(5)?,
            attempts: row.get(6)?,
        };
        to.blocking_send(TransferRecord::Step(step))?;
    }
    Ok(())
}

fn run_from_row(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    Ok(RunRow {
        id: row.get(0)?,
        owner: Principal { tenant: row.get(1)?, subject: row.get(2)? },
        path: row.get(3)?,
        name: row.get(4)?,
        text: row.get(5)?,
        hash: row.get(6)?,
        params: row.get(7)?,
        status: row.get(8)?,
        outputs: row.get(9)?,
        error: row.get(10)?,
        begun: row.get(11)?,
        changed: row.get(12)?,
        fence: row.get(13)?,
    })
}

pub(super) fn import_run(conn: &Connection, run: &RunRow) -> CopyResult<()> {
    conn.prepare_cached(
        "INSERT INTO runs
            (id, tenant, subject, path, name, text, hash, params, status, outputs, error, begun, changed, fence)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )?
    .execute(params![
        run.id,
        run.owner.tenant,
        run.owner.subject,
        run.path,
        run.name,
        run.text,
        run.hash,
        run.params,
        run.status,
        run.outputs,
        run.error,
        run.begun,
        run.changed,
        run.fence
    ])?;
    Ok(())
}

pub(super) fn import_step(conn: &Connection, step: &StepRow) -> CopyResult<()> {
    conn.prepare_cached(
        "INSERT INTO steps (run, key, status, output, error, attempts) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute((&step.run, &step.key, &step.status, &step.output, &step.error, &step.attempts))?;
    Ok(())
}
