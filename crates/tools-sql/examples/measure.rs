//! `db_query` against the bare driver that writes the same rows as JSON, in turn. Prints the medians and their ratio.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a measurement that cannot go on fails"
)]

use octo_grants::Capabilities;
use octo_grants::sql::{Sql, SqlConnection, SqlSpec};
use octo_model::{Caller, Json};
use octo_toolkit::CallContext;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, NoTls, Row, Statement};
use tokio_util::sync::CancellationToken;

const QUERY: &str =
    "SELECT id, name, price, weight, made, active, tags, note FROM measured ORDER BY id LIMIT 1000";
const ROUNDS: usize = 300;

const CREATE_TABLE_SQL: &str = "CREATE TABLE measured AS SELECT n::int8 AS id, 'a name of item ' || n AS name, (n * 1.25)::numeric(12, 2) AS price, \
     n / 7.0::float8 AS weight, now() + n * interval '1 second' AS made, n % 2 = 0 AS active, \
     ARRAY['tag' || n, 'other'] AS tags, jsonb_build_object('n', n, 'text', 'note') AS note \
     FROM generate_series(1, 1000) n";

#[tokio::main]
async fn main() {
    let admin = std::env::var("POSTGRES").expect("POSTGRES is not set");
    let place = admin.rsplit('@').next().unwrap().split('/').next().unwrap().to_owned();
    let name = format!("octo_measure_{}", std::process::id());
    let server = client(&admin).await;
    server.batch_execute(&format!("CREATE ROLE {name} LOGIN PASSWORD 'pw'")).await.unwrap();
    server.batch_execute(&format!("CREATE DATABASE {name} OWNER {name}")).await.unwrap();
    let dsn = format!("postgres://{name}:pw@{place}/{name}");
    client(&dsn).await.batch_execute(CREATE_TABLE_SQL).await.unwrap();
    measure(&dsn).await;
    server.batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)")).await.unwrap();
    server.batch_execute(&format!("DROP ROLE {name}")).await.unwrap();
}

async fn measure(dsn: &str) {
    let bare = client(dsn).await;
    let spec = SqlSpec { connections: vec![SqlConnection::new("default", dsn)], ..SqlSpec::default() };
    let doors = Capabilities::default().with(Sql::new(&spec).unwrap());
    let toolbox = tools_sql::sql_toolbox();
    let tool = toolbox.tools.iter().find(|tool| tool.name == "db_query").unwrap();
    let input = Json::from(json!({"sql": QUERY, "max_rows": 1000}));
    let prepared = bare.prepare(QUERY).await.unwrap();
    let (mut direct, mut ready, mut through) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS + 20 {
        let began = Instant::now();
        let text = driver(&bare, None).await;
        let first = began.elapsed();
        let began = Instant::now();
        driver(&bare, Some(&prepared)).await;
        let kept = began.elapsed();
        let cx = CallContext::new(
            Arc::new(Caller::local()),
            Instant::now() + Duration::from_secs(30),
            CancellationToken::new(),
        );
        let began = Instant::now();
        let answer = tool.run(input.clone(), &doors, &cx).await.unwrap();
        let second = began.elapsed();
        if round == 0 {
            let rows: Value = answer.to::<Value>().unwrap()["rows"].clone();
            assert_eq!(rows.as_array().unwrap().len(), 1000);
            println!("bytes: bare {}, db_query {}", text.len(), answer.as_str().len());
        }
        if round >= 20 {
            direct.push(first);
            ready.push(kept);
            through.push(second);
        }
    }
    let (direct, ready, through) = (median(direct), median(ready), median(through));
    let ratio = |bare: Duration| through.as_secs_f64() / bare.as_secs_f64();
    println!(
        "1000 rows: bare tokio-postgres to JSON {direct:?}, db_query {through:?}, ratio {:.2}",
        ratio(direct)
    );
    println!("with a statement that was prepared before: {ready:?}, ratio {:.2}", ratio(ready));
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

async fn client(dsn: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(dsn, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Straightforward code: query, rows to values, to text.
async fn driver(client: &Client, statement: Option<&Statement>) -> Vec<u8> {
    let rows = match statement {
        Some(statement) => client.query(statement, &[]).await.unwrap(),
        None => client.query(QUERY, &[]).await.unwrap(),
    };
    let values: Vec<Value> = rows.iter().map(row).collect();
    serde_json::to_vec(&values).unwrap()
}

fn row(row: &Row) -> Value {
    let one = |at: usize| match row.columns()[at].type_() {
        kind if *kind == Type::INT8 => json!(row.get::<_, Option<i64>>(at)),
        kind if *kind == Type::TEXT => json!(row.get::<_, Option<&str>>(at)),
        kind if *kind == Type::FLOAT8 => json!(row.get::<_, Option<f64>>(at)),
        kind if *kind == Type::BOOL => json!(row.get::<_, Option<bool>>(at)),
        kind if *kind == Type::TEXT_ARRAY => json!(row.get::<_, Option<Vec<String>>>(at)),
        kind if *kind == Type::JSONB => row.get::<_, Option<Value>>(at).unwrap_or_default(),
        kind if *kind == Type::TIMESTAMPTZ => json!(row.get::<_, Option<jiff::Timestamp>>(at)),
        kind if *kind == Type::NUMERIC => json!(row.get::<_, Option<Decimal>>(at).map(|decimal| decimal.0)),
        _ => Value::Null,
    };
    Value::Array((0..row.len()).map(one).collect())
}

/// A decimal number in the binary format of the protocol: groups of four digits.
struct Decimal(String);

impl<'a> tokio_postgres::types::FromSql<'a> for Decimal {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        let word = |at: usize| i16::from_be_bytes([raw[at], raw[at + 1]]);
        let (digits, weight, scale) = (word(0), word(2), word(6) as usize);
        let group = |at: i16| if at >= 0 && at < digits { word(8 + 2 * at as usize) } else { 0 };
        let mut text = if word(4) == 0x4000 { "-".to_owned() } else { String::new() };
        for at in 0..=weight.max(0) {
            let group = if weight < 0 { 0 } else { group(at) };
            text += &if at == 0 { group.to_string() } else { format!("{group:04}") };
        }
        if scale > 0 {
            let groups = scale.div_ceil(4);
            let fraction: String =
                (0..groups as i16).map(|at| format!("{:04}", group(weight + 1 + at))).collect();
            text = text + "." + &fraction[..scale];
        }
        Ok(Self(text))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::NUMERIC
    }
}
