//! Looks up one value of a large table: on a page, in a file, in a database.

use crate::cost_agent::Agent;
use crate::loopback_site::serve;
use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::response::Html;
use axum::routing::get;
use octo_tests::hub_process::HubHome;
use octo_tests::test_binaries::service_variable;
use serde_json::{Value, json};
use std::fmt::Write as _;

const ROWS: usize = 2_000;
const WANTED_ROW: usize = 1_234;

fn city(at: usize) -> String {
    format!("Station {at}")
}

fn rain(at: usize) -> usize {
    (at * 7_919) % 1_000
}

#[tokio::test]
async fn a_value_is_read_out_of_a_table_of_a_page() -> Result<()> {
    let mut page = "<!doctype html><title>Rain</title><h1>Rain by station</h1><p>Millimetres in a year.</p><table><thead><tr><th>Station</th><th>Country</th><th>Rain</th></tr></thead><tbody>".to_owned();
    for at in 0..ROWS {
        write!(page, "<tr><td>{}</td><td>NO</td><td>{}</td></tr>", city(at), rain(at))?;
    }
    page.push_str("</tbody></table>");
    let base = serve(Router::new().route("/rain", get(async move || Html(page)))).await?;
    let home = HubHome::new(&json!({"net": {"allow": ["127.0.0.1"]}}))?;
    let mut agent = Agent::new(&home).await?;
    let query = format!("Rain of {}", city(WANTED_ROW));
    let read = agent.call("read_page", json!({"url": format!("{base}/rain"), "query": query})).await?;
    let row = format!("| {} | NO | {} |", city(WANTED_ROW), rain(WANTED_ROW));
    ensure!(read["passages"].to_string().contains(&row), "{read}");
    agent.finish("a value of a large HTML table", 1, 1_500)
}

#[tokio::test]
async fn a_value_is_read_out_of_a_csv_file() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let mut text = "station,country,rain\n".to_owned();
    for at in 0..ROWS * 50 {
        writeln!(text, "{},NO,{}", city(at), rain(at))?;
    }
    std::fs::write(home.workspace().join("rain.csv"), text)?;
    let mut agent = Agent::new(&home).await?;
    let head = agent.call("fs_read_text", json!({"path": "rain.csv", "head": 2})).await?;
    ensure!(
        head["content"].as_str().is_some_and(|text| text.starts_with("station,country,rain\n")),
        "{head}"
    );
    let pattern = format!("^{},", city(WANTED_ROW));
    let found = agent.call("fs_search", json!({"path": "rain.csv", "pattern": pattern})).await?;
    assert_eq!(found["total_matches"], 1);
    assert_eq!(found["matches"][0]["text"], format!("{},NO,{}", city(WANTED_ROW), rain(WANTED_ROW)));
    agent.finish("a value of a large CSV file", 2, 400)
}

#[tokio::test]
async fn a_value_is_read_out_of_a_table_of_a_database() -> Result<()> {
    let table = format!("rain_{}", std::process::id());
    let dsn = service_variable("POSTGRES")?;
    let home = HubHome::new(&json!({
        "toolboxes": {"database": true},
        "database": {"connections": {"default": dsn}, "superusers": ["default"], "read_only": false},
    }))?;
    let mut agent = Agent::new(&home).await?;
    let make = format!(
        "CREATE TABLE {table} AS SELECT 'Station ' || n AS station, 'NO' AS country, (n * 7919) % 1000 AS rain FROM generate_series(0, {}) AS n",
        ROWS - 1
    );
    Agent::new(&home).await?.call("db_execute", json!({"sql": make})).await?;
    let read = read_from_database(&mut agent, &table).await;
    Agent::new(&home).await?.call("db_execute", json!({"sql": format!("DROP TABLE {table}")})).await?;
    read?;
    agent.finish("a value of a large SQL table", 2, 600)
}

async fn read_from_database(agent: &mut Agent, table: &str) -> Result<()> {
    let schema = agent.call("db_schema", json!({"table": table})).await?;
    ensure!(schema.to_string().contains("\"rain\""), "{schema}");
    let sql = format!("SELECT rain FROM {table} WHERE station = $1");
    let found = agent.call("db_query", json!({"sql": sql, "params": [city(WANTED_ROW)]})).await?;
    let value: &Value = found["rows"].get(0).and_then(|row| row.get(0)).context("no row")?;
    assert_eq!(value, &json!(rain(WANTED_ROW)));
    Ok(())
}
