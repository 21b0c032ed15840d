//! Throughput beside bare `COPY` and bare `INSERT`: `cargo test --release -p octo-postgres --test postgres --
//! --ignored --nocapture stored_audit::speed`.

use super::{closing, start};
use crate::postgres_schema::{PostgresSchema, client};
use octo_ports::Stores;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio_postgres::Client;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};

const ROUND: Duration = Duration::from_secs(3);
const ROUNDS: usize = 5;

/// Records per second of this many callers.
async fn audit(stores: &Stores, tasks: usize, with_ends: bool) -> f64 {
    let (stores, stop) = (Arc::new(stores.clone()), Arc::new(AtomicBool::new(false)));
    let began = Instant::now();
    let callers: Vec<_> = (0..tasks)
        .map(|_| {
            let (stores, stop) = (Arc::clone(&stores), Arc::clone(&stop));
            tokio::spawn(async move {
                let mut records = 0;
                while !stop.load(Ordering::Relaxed) {
                    let id = start(&stores, "time_now").await.unwrap();
                    records += 1;
                    if with_ends {
                        stores.audit.close(closing(id));
                        records += 1;
                    }
                }
                records
            })
        })
        .collect();
    tokio::time::sleep(ROUND).await;
    stop.store(true, Ordering::Relaxed);
    let mut records = 0;
    for caller in callers {
        records += caller.await.unwrap();
    }
    stores.audit.flush().await.unwrap();
    f64::from(records) / began.elapsed().as_secs_f64()
}

/// A row as the audit log writes it.
struct BareRow {
    at: i64,
    hash: Vec<u8>,
    record: Vec<u8>,
}

async fn bare_rows(client: &Client) -> Vec<BareRow> {
    let rows = client.query("SELECT at, hash, record FROM audit LIMIT 1000", &[]).await.unwrap();
    rows.iter().map(|row| BareRow { at: row.get(0), hash: row.get(1), record: row.get(2) }).collect()
}

/// Records per second in groups of this size, one transaction each.
async fn bare(client: &Client, rows: &[BareRow], group: usize, seq: &mut i64, is_copy: bool) -> f64 {
    let copy = client.prepare("COPY audit (chain, seq, at, hash, record) FROM STDIN BINARY").await.unwrap();
    let insert = "INSERT INTO audit (chain, seq, at, hash, record)
        SELECT 'bare', unnest($1::int8[]), unnest($2::int8[]), unnest($3::bytea[]), unnest($4::bytea[])";
    let insert = client.prepare(insert).await.unwrap();
    let (began, mut records) = (Instant::now(), 0);
    while began.elapsed() < ROUND {
        let group: Vec<&BareRow> = rows.iter().cycle().skip(records % rows.len()).take(group).collect();
        client.batch_execute("BEGIN").await.unwrap();
        if is_copy {
            let sink = client.copy_in(&copy).await.unwrap();
            let types = [Type::TEXT, Type::INT8, Type::INT8, Type::BYTEA, Type::BYTEA];
            let mut writer = std::pin::pin!(BinaryCopyInWriter::new(sink, &types));
            for row in &group {
                *seq += 1;
                let values: [&(dyn ToSql + Sync); 5] = [&"bare", seq, &row.at, &row.hash, &row.record];
                writer.as_mut().write(&values).await.unwrap();
            }
            writer.as_mut().finish().await.unwrap();
        } else {
            let seqs: Vec<i64> = group
                .iter()
                .map(|_| {
                    *seq += 1;
                    *seq
                })
                .collect();
            let times: Vec<i64> = group.iter().map(|row| row.at).collect();
            let hashes: Vec<&[u8]> = group.iter().map(|row| &row.hash[..]).collect();
            let bytes: Vec<&[u8]> = group.iter().map(|row| &row.record[..]).collect();
            client.execute(&insert, &[&seqs, &times, &hashes, &bytes]).await.unwrap();
        }
        client.batch_execute("COMMIT").await.unwrap();
        records += group.len();
    }
    records as f64 / began.elapsed().as_secs_f64()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures for minutes"]
async fn speed() {
    for with_ends in [false, true] {
        for tasks in [1, 16, 64, 256, 1024] {
            measure(tasks, with_ends).await;
        }
    }
}

async fn measure(tasks: usize, with_ends: bool) {
    let schema = PostgresSchema::new().await;
    let stores = schema.stores();
    audit(&stores, tasks, with_ends).await;
    let groups = "SELECT greatest(count(*) / count(DISTINCT xmin::text), 1) FROM audit";
    let group = usize::try_from(schema.count(groups).await).unwrap();
    let bare_client = client(&schema.admin).await;
    bare_client
        .batch_execute(&format!("SET search_path TO {}", schema.options.schema.as_str()))
        .await
        .unwrap();
    let rows = bare_rows(&bare_client).await;
    let (mut seq, mut rates) = (0, [Vec::new(), Vec::new(), Vec::new()]);
    for _ in 0..ROUNDS {
        rates[0].push(audit(&stores, tasks, with_ends).await);
        rates[1].push(bare(&bare_client, &rows, group, &mut seq, true).await);
        rates[2].push(bare(&bare_client, &rows, group, &mut seq, false).await);
    }
    let [audit, copy, insert] = rates.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        rates[ROUNDS / 2]
    });
    println!(
        "{tasks} callers{}: {audit:.0} records/s in groups of {group}; bare COPY {copy:.0}/s (ratio {:.2}), bare INSERT {insert:.0}/s (ratio {:.2})",
        if with_ends { ", with ends of calls" } else { "" },
        audit / copy,
        audit / insert
    );
}
