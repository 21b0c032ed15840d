//! The five tools against a real server.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and looks at the server behind the tools"
)]

mod postgres_fixture;

use octo_grants::sql::{SqlConnection, SqlSpec};
use octo_model::Json;
use octo_toolkit::{CallContext, Kind};
use postgres_fixture::{TestDatabase, bench, capabilities, client, cx, spec, wait_until};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const SHOP_SQL: &str = "
    CREATE TYPE state AS ENUM ('open', 'closed');
    CREATE TABLE customers (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE, tags text[]);
    COMMENT ON TABLE customers IS 'Who buys';
    COMMENT ON COLUMN customers.name IS 'As they call themselves';
    CREATE TABLE orders (customer int REFERENCES customers ON DELETE CASCADE, number int, total numeric(10,2) DEFAULT 0,
        state state NOT NULL DEFAULT 'open', note jsonb, PRIMARY KEY (customer, number));
    CREATE INDEX late ON orders (state, lower(note->>'x')) WHERE total > 0;
    CREATE VIEW rich AS SELECT * FROM orders WHERE total > 1000;
    INSERT INTO customers (name, tags) VALUES ('Ann', '{new,good}'), ('Bob', NULL);
    INSERT INTO orders SELECT 1, n, n, 'open', '{\"x\": 1}' FROM generate_series(1, 300) n;
    ANALYZE;";

async fn shop(name: &str) -> TestDatabase {
    let database = TestDatabase::new(name).await;
    database.run(SHOP_SQL).await;
    database
}

#[tokio::test]
async fn a_query_gives_columns_rows_and_whether_there_are_more() {
    let database = shop("query").await;
    let bench = bench(&spec(&database.owner));
    let call = |input| bench.call("db_query", input);
    let some = call(json!({"sql": "SELECT number, total, state FROM orders ORDER BY number", "max_rows": 2}))
        .await
        .unwrap();
    assert_eq!(some["columns"], json!(["number", "total", "state"]));
    assert_eq!(some["types"], json!(["integer", "numeric", "state"]));
    assert_eq!(some["rows"], json!([[1, 1.0, "open"], [2, 2.0, "open"]]));
    assert_eq!((&some["row_count"], &some["truncated"]), (&json!(2), &json!(true)));
    for (sql, rows, truncated) in [
        ("SELECT * FROM orders", 100, true),
        ("SELECT * FROM orders LIMIT 100", 100, false),
        ("SELECT * FROM orders LIMIT 101", 100, true),
        ("SELECT * FROM orders WHERE false", 0, false),
        ("TABLE customers;", 2, false),
        ("VALUES (1), (2), (3)", 3, false),
        ("WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM t) SELECT n FROM t", 100, true),
        ("-- a remark\n(SELECT 1) UNION ALL SELECT 2 /* another */", 2, false),
        ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY total) FROM orders", 1, false),
        ("SELECT", 1, false),
    ] {
        let given = call(json!({"sql": sql})).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!((&given["row_count"], &given["truncated"]), (&json!(rows), &json!(truncated)), "{sql}");
    }
    database.drop_database().await;
}

#[tokio::test]
async fn parameters_take_the_type_of_their_place() {
    let database = shop("params").await;
    let bench = bench(&spec(&database.owner));
    for (sql, params, expected) in [
        ("SELECT $1::int + 1", json!([41]), json!(42)),
        ("SELECT name FROM customers WHERE id = $1", json!([1]), json!("Ann")),
        ("SELECT name FROM customers WHERE id = $1", json!(["1"]), json!("Ann")),
        ("SELECT name FROM customers WHERE tags @> $1", json!([["new"]]), json!("Ann")),
        ("SELECT count(*) FROM orders WHERE note @> $1", json!([{"x": 1}]), json!(300)),
        ("SELECT $1::text IS NULL", json!([null]), json!(true)),
        ("SELECT $1::numeric", json!([1.25]), json!(1.25)),
        ("SELECT $1::bool", json!([true]), json!(true)),
        ("SELECT $1::text", json!(["'; DROP TABLE orders; --"]), json!("'; DROP TABLE orders; --")),
        ("SELECT $1::int[]", json!([[[1, 2], [3, null]]]), json!([[1, 2], [3, null]])),
        ("SELECT $1::jsonb", json!([[1, {"a": "b"}]]), json!([1, {"a": "b"}])),
        ("SELECT upper($1::int4range)", json!([{"lower": 1, "upper": 5}]), json!(5)),
        ("SELECT ($1::customers).name", json!([{"name": "Zoë, \"x\""}]), json!("Zoë, \"x\"")),
    ] {
        let given = bench.call("db_query", json!({"sql": sql, "params": params})).await;
        let given = given.unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(given["rows"][0][0], expected, "{sql}");
    }
    let digits = "12345678901234567890.123456789";
    let exact: Value =
        serde_json::from_str(&format!("{{\"sql\": \"SELECT $1::numeric\", \"params\": [\"{digits}\"]}}"))
            .unwrap();
    assert_eq!(bench.call("db_query", exact).await.unwrap()["rows"][0][0], json!(digits));
    database.drop_database().await;
}

#[tokio::test]
async fn errors_say_state_position_and_what_to_do() {
    let database = shop("errors").await;
    let bench = bench(&spec(&database.reader));
    for (tool, sql, kind, parts) in [
        ("db_query", "SELECT * FROM nothing", Kind::NotFound, ["42P01", "at character 15", "db_schema"]),
        ("db_query", "SELECT nmae FROM customers", Kind::Invalid, ["42703", "at character 8", "name"]),
        ("db_query", "SELEC 1", Kind::Invalid, ["42601", "at character 1", "db_query takes one SELECT"]),
        ("db_query", "SELECT 1; SELECT 2", Kind::Invalid, ["42601", "multiple commands", "db_query takes"]),
        ("db_query", "DELETE FROM orders", Kind::Invalid, ["42601", "DELETE", "db_execute"]),
        (
            "db_query",
            "WITH gone AS (DELETE FROM orders RETURNING 1) SELECT count(*) FROM gone",
            Kind::Invalid,
            ["0A000", "data-modifying", "db_execute"],
        ),
        ("db_query", "SELECT 1/0", Kind::Invalid, ["22012", "division by zero", ""]),
        (
            "db_query",
            "SELECT pg_read_file('/etc/passwd')",
            Kind::Denied,
            ["42501", "permission denied", "role"],
        ),
        ("db_query", "SELECT $1::int", Kind::Invalid, ["0 parameters", "requires 1", ""]),
        ("db_query", " ", Kind::Invalid, ["empty", "", ""]),
        ("db_query", "-- nothing", Kind::Invalid, ["42601", "", ""]),
        ("db_explain", "DELETE FROM orders", Kind::Denied, ["25006", "read-only", "analyze false"]),
        (
            "db_execute",
            "INSERT INTO customers (name) VALUES ('Eve')",
            Kind::Denied,
            ["42501", "customers", ""],
        ),
    ] {
        let error = bench.call(tool, json!({"sql": sql})).await.expect_err(sql);
        assert_eq!(error.kind, kind, "{sql}: {error}");
        for part in parts {
            assert!(error.text().contains(part), "{sql}: {}", error.text());
        }
    }
    database.drop_database().await;
}

#[tokio::test]
async fn a_change_counts_can_be_tried_and_is_refused_where_nothing_may_change() {
    let database = shop("execute").await;
    let hub = bench(&spec(&database.owner));
    let call = |input| hub.call("db_execute", input);
    let tried = call(json!({"sql": "DELETE FROM orders", "dry_run": true})).await.unwrap();
    assert_eq!((&tried["affected_rows"], &tried["command"]), (&json!(300), &json!("DELETE 300")));
    let count = || async {
        hub.call("db_query", json!({"sql": "SELECT count(*) FROM orders"})).await.unwrap()["rows"][0][0]
            .clone()
    };
    assert_eq!(count().await, json!(300), "a trial leaves everything");
    let made = call(
        json!({"sql": "INSERT INTO customers (name, tags) VALUES ($1, $2), ('Dan', NULL) RETURNING id, tags", "params": ["Cy", ["a b"]]}),
    );
    let made = made.await.unwrap();
    assert_eq!((&made["affected_rows"], &made["rows"]), (&json!(2), &json!([[3, ["a b"]], [4, null]])));
    for (sql, affected) in [
        ("UPDATE orders SET total = 0 WHERE number <= 10", 10),
        ("CREATE TABLE copy AS SELECT * FROM orders", 300),
        ("VACUUM copy", 0),
        ("DROP TABLE copy", 0),
        ("DO $$ BEGIN DELETE FROM orders WHERE number = 300; END $$", 0),
        ("WITH gone AS (DELETE FROM orders WHERE number > 290 RETURNING 1) SELECT count(*) FROM gone", 0),
    ] {
        let given = call(json!({"sql": sql})).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(given["affected_rows"], json!(affected), "{sql}");
    }
    assert_eq!(count().await, json!(290));
    for (input, kind, part) in [
        (json!({"sql": "BEGIN"}), Kind::Invalid, "Transactions"),
        (json!({"sql": "COMMIT", "dry_run": true}), Kind::Invalid, "Transactions"),
        (json!({"sql": "DELETE FROM orders; DELETE FROM customers"}), Kind::Invalid, "multiple commands"),
        (json!({"sql": "COPY orders FROM STDIN"}), Kind::Invalid, "COPY"),
        (json!({"sql": "COPY orders TO STDOUT"}), Kind::Invalid, "COPY"),
        (json!({"sql": "INSERT INTO customers (name) VALUES ('Ann')"}), Kind::Conflict, "23505"),
        (json!({"sql": "VACUUM orders", "dry_run": true}), Kind::Invalid, "without dry_run"),
        (json!({"sql": "COPY orders TO PROGRAM 'id'"}), Kind::Denied, "42501"),
    ] {
        let error = call(input.clone()).await.expect_err("refused");
        assert_eq!(error.kind, kind, "{input}: {error}");
        assert!(error.text().contains(part), "{input}: {error}");
    }
    assert_eq!(count().await, json!(290), "what was refused left nothing, and no transaction is open");
    let closed = bench(&SqlSpec { read_only: true, ..spec(&database.owner) });
    let error = closed.call("db_execute", json!({"sql": "SELECT 1"})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Denied, "{error}");
    database.drop_database().await;
}

#[tokio::test]
async fn a_schema_is_described_with_all_its_keys() {
    let database = shop("schema").await;
    let bench = bench(&spec(&database.reader));
    let all = bench.call("db_schema", json!({})).await.unwrap();
    let names: Vec<&str> =
        all["tables"].as_array().unwrap().iter().filter_map(|table| table["name"].as_str()).collect();
    assert_eq!((names, &all["table_count"]), (vec!["customers", "orders", "rich"], &json!(3)));
    let customers = &all["tables"][0];
    assert_eq!((&customers["comment"], &customers["row_count_estimate"]), (&json!("Who buys"), &json!(2)));
    assert_eq!(
        customers["columns"][0],
        json!({"name": "id", "type": "integer", "nullable": false, "primary_key": true, "generated": "always"})
    );
    assert_eq!(customers["columns"][1]["comment"], json!("As they call themselves"));
    let orders = bench.call("db_schema", json!({"table": "orders"})).await.unwrap()["tables"][0].clone();
    assert_eq!(orders["primary_key"], json!(["customer", "number"]));
    assert_eq!(orders["columns"][2]["default"], json!("0"));
    assert_eq!(orders["columns"][3]["values"], json!(["open", "closed"]));
    assert_eq!(
        orders["foreign_keys"][0],
        json!({
        "name": "orders_customer_fkey", "columns": ["customer"], "references_schema": "public",
        "references_table": "customers", "references_columns": ["id"], "on_delete": "cascade"})
    );
    assert_eq!(orders["indexes"][0]["columns"], json!(["state", "lower(note ->> 'x'::text)"]));
    assert_eq!(orders["indexes"][1]["unique"], json!(true));
    assert!(orders.get("definition").is_none(), "{orders}");
    let rich = &all["tables"][2];
    assert!(rich["definition"].as_str().unwrap().trim_start().starts_with("SELECT"), "{rich}");
    for (table, schema) in [("public.orders", None), ("\"public\".\"orders\"", Some("public"))] {
        let input = match schema {
            Some(schema) => json!({"table": table, "schema": schema}),
            None => json!({"table": table}),
        };
        let found = bench.call("db_schema", input).await.unwrap();
        assert_eq!((&found["schema"], &found["tables"][0]["name"]), (&json!("public"), &json!("orders")));
    }
    database.run("ALTER TABLE orders ADD CONSTRAINT sane CHECK (total >= 0)").await;
    let checked = bench.call("db_schema", json!({"table": "orders"})).await.unwrap();
    assert_eq!(checked["tables"][0]["checks"], json!(["CHECK (total >= 0::numeric)"]));
    let error = bench.call("db_schema", json!({"schema": "a", "table": "b.c"})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Invalid);
    let some = bench.call("db_schema", json!({"max_tables": 1})).await.unwrap();
    assert_eq!((&some["truncated"], &some["table_count"]), (&json!(true), &json!(3)));
    for (input, part) in [(json!({"schema": "sales"}), "Schemas: "), (json!({"table": "order"}), "orders")] {
        let error = bench.call("db_schema", input).await.unwrap_err();
        assert_eq!(error.kind, Kind::NotFound);
        assert!(error.text().contains(part), "{error}");
    }
    database.drop_database().await;
}

#[tokio::test]
async fn a_plan_is_shown_in_every_format() {
    let database = shop("explain").await;
    let bench = bench(&spec(&database.reader));
    for (input, part) in [
        (json!({"sql": "SELECT * FROM orders WHERE number = $1", "params": [7]}), "actual time"),
        (json!({"sql": "SELECT * FROM orders", "analyze": false}), "Seq Scan on orders"),
        (json!({"sql": "DELETE FROM orders", "analyze": false}), "Delete on orders"),
        (json!({"sql": "SELECT 1", "format": "json"}), "\"Node Type\": \"Result\""),
        (json!({"sql": "SELECT 1", "format": "yaml"}), "Node Type: \"Result\""),
        (json!({"sql": "SELECT 1", "format": "xml"}), "<Node-Type>Result</Node-Type>"),
    ] {
        if input["sql"].as_str().unwrap().starts_with("DELETE") {
            let owner = postgres_fixture::bench(&spec(&database.owner));
            assert!(owner.call("db_explain", input).await.unwrap()["plan"].as_str().unwrap().contains(part));
            continue;
        }
        let given =
            bench.call("db_explain", input.clone()).await.unwrap_or_else(|error| panic!("{input}: {error}"));
        assert!(given["plan"].as_str().unwrap().contains(part), "{given}");
    }
    database.drop_database().await;
}

#[tokio::test]
async fn connections_are_listed_without_a_secret_and_logins_fail_without_one() {
    let database = shop("connections").await;
    let mut two = spec(&database.owner);
    two.connections.push(SqlConnection {
        read_only: true,
        ..SqlConnection::new("wrong", database.owner.replace(":pw@", ":hunter2@"))
    });
    two.connections.push(SqlConnection::new("away", "postgres://ann:hunter2@127.0.0.1:1/x"));
    let bench = bench(&two);
    let listed = bench.call("db_connections", json!({})).await.unwrap();
    assert_eq!(listed["connections"][0]["connected"], json!(false));
    assert_eq!(listed["connections"][1]["read_only"], json!(true));
    assert_eq!(listed["connections"][2]["host"], json!("127.0.0.1:1"));
    assert!(!listed.to_string().contains("hunter2") && !listed.to_string().contains("ann"), "{listed}");
    bench.call("db_query", json!({"sql": "SELECT 1"})).await.unwrap();
    assert_eq!(
        bench.call("db_connections", json!({})).await.unwrap()["connections"][0]["connected"],
        json!(true)
    );
    for name in ["wrong", "away"] {
        let error =
            bench.call("db_query", json!({"sql": "SELECT 1", "connection_name": name})).await.unwrap_err();
        assert_eq!(error.kind, Kind::Unavailable, "{error}");
        assert!(
            !format!("{error:?}").contains("hunter2") && !format!("{:?}", two).contains("hunter2"),
            "{error:?}"
        );
        assert!(!error.text().contains("owner"), "{error}");
    }
    let mut one = spec(&database.owner);
    one.connections[0].name = "shop".to_owned();
    let only = postgres_fixture::bench(&one);
    assert_eq!(only.call("db_query", json!({"sql": "SELECT 1"})).await.unwrap()["rows"], json!([[1]]));
    let error = only.call("db_query", json!({"sql": "SELECT 1", "connection_name": "x"})).await.unwrap_err();
    assert!(error.text().contains("Use one of: shop."), "{error}");
    let error = bench.call("db_query", json!({"sql": "SELECT 1", "connection_name": "x"})).await.unwrap_err();
    assert!(error.kind == Kind::NotFound && error.text().contains("default, wrong, away"), "{error}");
    database.drop_database().await;
}

/// Cancellation of statements, down to the server.
#[tokio::test]
async fn a_statement_ends_at_the_server_when_its_call_ends() {
    let database = shop("cancel").await;
    let spec = spec(&database.owner);
    let (hub, capabilities) = (bench(&spec), capabilities(&spec));
    let admin = client(&database.admin).await;
    let sleeping = || async {
        let count = admin.query_one("SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query ~ 'octo_rows|pg_sleep' AND datname = current_database() AND pid <> pg_backend_pid()", &[]);
        count.await.unwrap().get::<_, i64>(0)
    };
    let began = Instant::now();
    let error =
        hub.call("db_query", json!({"sql": "SELECT pg_sleep(60)", "timeout_s": 1})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Timeout, "{error}");
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    let tool = hub.tools().iter().find(|tool| tool.name == "db_query").unwrap();
    let spawn = |context: CallContext| {
        let (tool, capabilities) = (tool.clone(), capabilities.clone());
        let input = Json::from(json!({"sql": "SELECT pg_sleep(60)"}));
        tokio::spawn(async move { tool.run(input, &capabilities, &context).await })
    };
    // Cancelled by its token.
    let (context, cancel) = cx(30);
    let call = spawn(context);
    wait_until("the statement runs", || async { sleeping().await == 1 }).await;
    cancel.cancel();
    assert_eq!(call.await.unwrap().unwrap_err().kind, Kind::Cancelled);
    wait_until("the statement has ended", || async { sleeping().await == 0 }).await;
    // Dropped by the caller.
    let (context, _cancel) = cx(30);
    let call = spawn(context);
    wait_until("the statement runs", || async { sleeping().await == 1 }).await;
    call.abort();
    wait_until("the statement has ended", || async { sleeping().await == 0 }).await;
    // The statement itself has disabled the timeout.
    let sql = "SELECT set_config('statement_timeout', '0', false), pg_sleep(60)";
    let error = hub.call("db_query", json!({"sql": sql, "timeout_s": 1})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Timeout, "{error}");
    wait_until("the statement has ended", || async { sleeping().await == 0 }).await;
    database.drop_database().await;
}

#[tokio::test]
async fn large_answers_are_cut_and_cost_no_memory() {
    let database = shop("large").await;
    let hub = bench(&SqlSpec { max_bytes: 1 << 20, ..spec(&database.owner) });
    let many = hub
        .call(
            "db_query",
            json!({"sql": "SELECT repeat('x', 1000), generate_series(1, 1000000000)", "max_rows": 10000}),
        )
        .await
        .unwrap();
    assert_eq!(many["truncated"], json!(true));
    let count = many["row_count"].as_u64().unwrap();
    assert!((900..1100).contains(&count), "{count}");
    let error = hub.call("db_query", json!({"sql": "SELECT repeat('x', 5000000)"})).await.unwrap_err();
    assert_eq!(error.kind, Kind::TooLarge, "{error}");
    hub.call("db_query", json!({"sql": "SELECT 1"})).await.unwrap();
    database.drop_database().await;
}

#[tokio::test]
async fn nothing_of_one_call_is_left_for_the_next() {
    let database = shop("reset").await;
    let one = SqlSpec { sessions: 1, ..spec(&database.owner) };
    let hub = bench(&one);
    for sql in [
        "SET search_path = nowhere",
        "SET default_transaction_read_only = on",
        "SET ROLE pg_database_owner",
        "SET statement_timeout = 1",
        "SET TimeZone = 'Asia/Tokyo'",
        "CREATE TEMP TABLE orders (evil int)",
        "PREPARE evil AS SELECT 1",
        "LISTEN evil",
        "SELECT pg_advisory_lock(7)",
        "SELECT set_config('octo.secret', 'mine', false)",
        "DECLARE evil CURSOR WITH HOLD FOR SELECT 1",
        "BEGIN",
        "SELECT nope",
    ] {
        drop(hub.call("db_execute", json!({"sql": sql})).await);
        let state = "SELECT current_setting('search_path'), current_setting('TimeZone'), current_user = session_user, \
             to_regclass('pg_temp.orders') IS NULL, (SELECT count(*) FROM pg_prepared_statements WHERE name <> ''), \
             (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), current_setting('octo.secret', true), \
             (SELECT count(*) FROM pg_cursors WHERE name <> 'octo_rows' AND name <> ''), \
             (SELECT count(*) FROM pg_listening_channels())";
        let seen = hub.call("db_execute", json!({"sql": state})).await.unwrap();
        let row = &seen["rows"][0];
        let secret = row[6].as_str().unwrap_or_default();
        assert_eq!((secret, &row[0], &row[1]), ("", &json!("\"$user\", public"), &json!("Etc/UTC")), "{sql}");
        assert_eq!(&row.as_array().unwrap()[2..6], json!([true, true, 0, 0]).as_array().unwrap(), "{sql}");
        assert_eq!(&row.as_array().unwrap()[7..], json!([0, 0]).as_array().unwrap(), "{sql}");
        hub.call("db_execute", json!({"sql": "UPDATE orders SET total = 1 WHERE number = 1"})).await.unwrap();
    }
    database.drop_database().await;
}

#[tokio::test]
async fn a_role_that_no_transaction_can_fence_is_refused() {
    let database = shop("super").await;
    let admin = client(&database.admin).await;
    let accepted = |dsn: &str, superuser| {
        let mut spec = spec(dsn);
        spec.connections[0].superuser = superuser;
        bench(&spec)
    };
    let error =
        accepted(&database.admin, false).call("db_query", json!({"sql": "SELECT 1"})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Denied, "{error}");
    assert!(error.text().contains("pg_read_all_data"), "{error}");
    accepted(&database.admin, true).call("db_query", json!({"sql": "SELECT 1"})).await.unwrap();
    let name = &database.name;
    for role in
        ["pg_execute_server_program", "pg_read_server_files", "pg_write_server_files", "pg_signal_backend"]
    {
        admin.batch_execute(&format!("GRANT {role} TO {name}_reader")).await.unwrap();
        for tool in ["db_query", "db_explain", "db_execute"] {
            let error =
                accepted(&database.reader, false).call(tool, json!({"sql": "SELECT 1"})).await.unwrap_err();
            assert_eq!(error.kind, Kind::Denied, "{role} {error}");
        }
        admin.batch_execute(&format!("REVOKE {role} FROM {name}_reader")).await.unwrap();
    }
    // A role that can become superuser counts as one.
    admin.batch_execute(&format!("GRANT postgres TO {name}_reader")).await.unwrap();
    let error =
        accepted(&database.reader, false).call("db_query", json!({"sql": "SELECT 1"})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Denied, "{error}");
    admin.batch_execute(&format!("REVOKE postgres FROM {name}_reader")).await.unwrap();
    accepted(&database.reader, false).call("db_query", json!({"sql": "SELECT 1"})).await.unwrap();
    // Reads through a separate login, changes through the other.
    let mut split = spec(&database.owner);
    split.connections[0].reader = Some(octo_model::Secret::new(database.reader.as_str()));
    let hub = bench(&split);
    let who = hub.call("db_query", json!({"sql": "SELECT session_user"})).await.unwrap();
    assert_eq!(who["rows"][0][0], json!(format!("{name}_reader")));
    hub.call("db_execute", json!({"sql": "DELETE FROM orders"})).await.unwrap();
    database.drop_database().await;
}

#[test]
fn parameters_have_their_defaults_and_every_field_says_what_it_is() {
    fn undocumented(schema: &Value) -> Vec<String> {
        let fields = schema["properties"].as_object().into_iter().flatten();
        let bare = fields
            .clone()
            .filter(|(_, field)| !field["description"].is_string())
            .map(|(name, _)| name.clone());
        let deeper = fields
            .flat_map(|(_, field)| undocumented(field).into_iter().chain(undocumented(&field["items"])));
        bare.chain(deeper).collect()
    }
    let toolbox = tools_sql::sql_toolbox();
    assert_eq!(toolbox.name, "database");
    for (name, required, defaults) in [
        ("db_query", json!(["sql"]), json!({"max_rows": 100, "timeout_s": 30, "connection_name": "default"})),
        (
            "db_execute",
            json!(["sql"]),
            json!({"timeout_s": 30, "connection_name": "default", "dry_run": false}),
        ),
        ("db_schema", json!(null), json!({"schema": "public", "connection_name": "default"})),
        (
            "db_explain",
            json!(["sql"]),
            json!({"analyze": true, "format": "text", "connection_name": "default"}),
        ),
        ("db_connections", json!(null), json!({})),
    ] {
        let tool = toolbox.tools.iter().find(|tool| tool.name == name).unwrap();
        let input: Value = tool.definition.get("inputSchema").unwrap().to().unwrap();
        let output: Value = tool.definition.get("outputSchema").unwrap().to().unwrap();
        assert_eq!(input["required"], required, "{input}");
        for (field, value) in defaults.as_object().unwrap() {
            assert_eq!(&input["properties"][field]["default"], value, "{name} {field}");
        }
        if input["properties"].get("params").is_some() {
            assert_eq!(input["properties"]["params"]["type"], json!("array"), "{input}");
        }
        assert_eq!((undocumented(&input), undocumented(&output)), (vec![], vec![]), "{name}");
        let both = format!("{input}{output}");
        assert!(
            !both.contains("$ref") && !both.contains("\"items\":true") && !both.contains(":null"),
            "{both}"
        );
    }
}
