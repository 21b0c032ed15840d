//! Every type of the server is read as JSON and written back as the same value.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and looks at the server behind the tools"
)]

mod postgres_fixture;

use octo_toolkit::ToolFixture;
use postgres_fixture::{TestDatabase, bench, client, spec};
use serde_json::{Value, json};

/// A value of each base type as SQL text. Types not listed have no values that can be written.
const SAMPLES: &[(&str, &str)] = &[
    ("aclitem", "postgres=r/postgres"),
    ("bit", "1"),
    ("bool", "true"),
    ("box", "(3,4),(1,2)"),
    ("bpchar", "pad "),
    ("bytea", "\\xdeadbeef00"),
    ("char", "x"),
    ("cid", "7"),
    ("cidr", "10.1.0.0/16"),
    ("circle", "<(1,2),3>"),
    ("cstring", "c text"),
    ("date", "2026-02-28"),
    ("float4", "1.5e-7"),
    ("float8", "0.1"),
    ("inet", "192.168.0.1/24"),
    ("int2", "-32768"),
    ("int2vector", "1 2 3"),
    ("int4", "2147483647"),
    ("int8", "9223372036854775807"),
    ("interval", "1 year 2 mons 3 days 04:05:06.789"),
    ("json", "{\"a\": [1, 2.50, null], \"b\": \"x\\ny\"}"),
    ("jsonb", "{\"a\": [1, 1234567.125], \"b\": {}}"),
    ("jsonpath", "$.\"a\"[*]?(@ > 1)"),
    ("line", "{1,-1,0}"),
    ("lseg", "[(1,2),(3,4)]"),
    ("macaddr", "08:00:2b:01:02:03"),
    ("macaddr8", "08:00:2b:01:02:03:04:05"),
    ("money", "$1,234.56"),
    ("name", "a name"),
    ("numeric", "-1234567890123456789.000000000123400"),
    ("oid", "4294967295"),
    ("oidvector", "1 23"),
    ("path", "((1,2),(3,4),(5,6))"),
    ("pg_lsn", "16/B374D848"),
    ("pg_snapshot", "10:20:10,14,15"),
    ("point", "(1.5,-2)"),
    ("polygon", "((0,0),(1,1),(2,0))"),
    ("refcursor", "a cursor"),
    ("regclass", "pg_class"),
    ("regcollation", "\"C\""),
    ("regconfig", "english"),
    ("regdictionary", "simple"),
    ("regnamespace", "pg_catalog"),
    ("regoper", "||/"),
    ("regoperator", "+(integer,integer)"),
    ("regproc", "now"),
    ("regprocedure", "abs(integer)"),
    ("regrole", "postgres"),
    ("regtype", "integer"),
    ("text", "ä \"quoted\" \\ {,} \u{1F600}\n\t'"),
    ("tid", "(4,2)"),
    ("time", "23:59:59.999999"),
    ("timestamp", "2026-02-28 12:34:56.789"),
    ("timestamptz", "2026-02-28 12:34:56.789+05:30"),
    ("timetz", "12:34:56+02"),
    ("tsquery", "'fat' & ( 'rat' | !'cat':AB )"),
    ("tsvector", "'a':1A 'it''s':2"),
    ("txid_snapshot", "10:20:10,14,15"),
    ("uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("varbit", "10101"),
    ("varchar", "varying"),
    ("xid", "42"),
    ("xid8", "18446744073709551615"),
    ("xml", "<a b=\"c\">d &amp; e</a>"),
];

/// Types whose values only the server creates; it refuses to read any of them.
const MADE_BY_SERVER: &[&str] = &[
    "gtsvector",
    "pg_brin_bloom_summary",
    "pg_brin_minmax_multi_summary",
    "pg_dependencies",
    "pg_mcv_list",
    "pg_ndistinct",
    "pg_node_tree",
];

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn in_braces(text: &str, delimiter: char) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("{{\"{text}\"{delimiter}NULL{delimiter}\"{text}\"}}")
}

async fn value(bench: &ToolFixture, sql: &str, params: Value) -> Value {
    let given = bench.call("db_query", json!({"sql": sql, "params": params})).await;
    given.unwrap_or_else(|error| panic!("{sql}: {error}"))["rows"][0][0].clone()
}

/// Read as JSON, written back as a parameter, and compared by the server.
async fn round(bench: &ToolFixture, name: &str, literal: &str) -> Value {
    let given = value(bench, &format!("SELECT {}::{name}", quoted(literal)), json!([])).await;
    assert!(!given.is_null(), "{name} {literal}");
    // A number is equal with and without trailing zeros, and json with and without spaces.
    let (open, close) = match name {
        "numeric" => ("", ""),
        json if json.contains("json\"") => ("to_jsonb(", ")"),
        _ => ("(", ")::text"),
    };
    let literal_sql = quoted(literal);
    let same = format!("SELECT {open}$1::{name}{close} = {open}{literal_sql}::{name}{close}");
    assert_eq!(value(bench, &same, json!([given])).await, json!(true), "{name}: {literal} became {given}");
    given
}

#[tokio::test]
async fn every_type_of_the_catalogue_round_trips() {
    let database = TestDatabase::new("types").await;
    let bench = bench(&spec(&database.owner));
    let admin = client(&database.admin).await;
    let types = admin
        .query(
            "SELECT t.typname::text, t.typtype::text, e.typname::text, e.typdelim::text, s.typname::text \
             FROM pg_type t LEFT JOIN pg_type e ON e.oid = t.typelem AND t.typoutput = 'array_out'::regproc \
             LEFT JOIN pg_range r ON r.rngtypid = t.oid OR r.rngmultitypid = t.oid LEFT JOIN pg_type s ON s.oid = r.rngsubtype \
             WHERE t.typnamespace = 'pg_catalog'::regnamespace AND t.typtype IN ('b', 'r', 'm') \
             AND coalesce(e.typtype, 'b') <> 'c' ORDER BY 1",
            &[],
        )
        .await
        .unwrap();
    let sample =
        |name: &str| SAMPLES.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned());
    let range = |subtype: &str| {
        let (low, high) = match subtype {
            "int4" | "int8" | "numeric" => ("1", "10"),
            "date" => ("2026-01-01", "2026-12-31"),
            "timestamp" => ("\"2026-01-01 10:00:00\"", "\"2026-12-31 12:00:00\""),
            _ => ("\"2026-01-01 10:00:00+00\"", "\"2026-12-31 12:00:00+00\""),
        };
        format!("[{low},{high})")
    };
    let (mut rounds, mut empty) = (0, 0);
    for row in &types {
        let (name, class): (String, String) = (row.get(0), row.get(1));
        let (element, delimiter): (Option<String>, Option<String>) = (row.get(2), row.get(3));
        let subtype: Option<String> = row.get(4);
        let written = format!("pg_catalog.\"{name}\"");
        let literal = match (&element, class.as_str(), &subtype) {
            (Some(element), _, _) => {
                let within = sample(element).or_else(|| {
                    let of = element.strip_suffix("multirange").or_else(|| element.strip_suffix("range"))?;
                    let subtype = match of {
                        "int4" | "int8" | "date" => of,
                        "num" => "numeric",
                        "ts" => "timestamp",
                        _ => "timestamptz",
                    };
                    let range = range(subtype);
                    Some(if element.ends_with("multirange") { format!("{{{range}}}") } else { range })
                });
                within.map(|text| in_braces(&text, delimiter.unwrap().chars().next().unwrap()))
            }
            (None, "r", Some(subtype)) => Some(range(subtype)),
            (None, "m", Some(subtype)) => Some(format!("{{{}}}", range(subtype))),
            _ => sample(&name),
        };
        match literal {
            Some(literal) => {
                round(&bench, &written, &literal).await;
                rounds += 1;
            }
            None => {
                let base = element.as_deref().unwrap_or(&name);
                assert!(MADE_BY_SERVER.contains(&base), "{name} has no sample");
                assert_eq!(value(&bench, &format!("SELECT NULL::{written}"), json!([])).await, Value::Null);
                empty += 1;
            }
        }
    }
    println!("{rounds} types round-trip, {empty} have no values that can be written");
    assert!(rounds >= 140, "{rounds}");
    database.drop_database().await;
}

async fn looks(name: &str) -> TestDatabase {
    let database = TestDatabase::new(name).await;
    client(&database.admin).await.batch_execute("CREATE EXTENSION hstore").await.unwrap();
    database
        .run(
            "CREATE TYPE mood AS ENUM ('so so', 'good');
             CREATE TYPE pair AS (a int, b text, m mood[]);
             CREATE DOMAIN positive AS numeric CHECK (VALUE > 0);
             CREATE DOMAIN pairs AS pair[];
             CREATE TYPE floats AS RANGE (subtype = float8);",
        )
        .await;
    database
}

#[tokio::test]
async fn scalars_look_as_their_reader_expects() {
    let database = looks("scalars").await;
    let bench = bench(&spec(&database.owner));
    let moment = "2026-02-28T07:04:56.789+00:00";
    for (name, literal, expected) in [
        ("int8", "9007199254740992", json!(9_007_199_254_740_992_i64)),
        ("int8", "9007199254740993", json!("9007199254740993")),
        ("numeric", "0.10", json!(0.10)),
        ("numeric", "0.1234567890123456789", json!("0.1234567890123456789")),
        ("numeric", "NaN", json!("NaN")),
        ("float8", "Infinity", json!("Infinity")),
        ("float8", "1e300", json!(1e300)),
        ("float4", "0.1", json!(0.1)),
        ("timestamptz", "2026-02-28 12:34:56.789+05:30", json!(moment)),
        ("timestamptz", "infinity", json!("infinity")),
        ("timestamp", "2026-02-28 12:34:56", json!("2026-02-28T12:34:56")),
        ("timestamp", "0044-03-15 BC", json!("0044-03-15 00:00:00 BC")),
        ("timetz", "12:00+02", json!("12:00:00+02:00")),
        ("interval", "1 year 2 days 03:04:05.5", json!("P1Y2DT3H4M5.5S")),
        ("bytea", "\\x00ff", json!("\\x00ff")),
        ("bool", "f", json!(false)),
        ("jsonb", "{\"a\": [1, {\"b\": null}]}", json!({"a": [1, {"b": null}]})),
    ] {
        assert_eq!(round(&bench, name, literal).await, expected, "{name} {literal}");
    }
    database.drop_database().await;
}

#[tokio::test]
async fn structures_look_as_their_reader_expects() {
    let database = looks("structures").await;
    let bench = bench(&spec(&database.owner));
    for (name, literal, expected) in [
        ("int4[]", "{1,NULL,3}", json!([1, null, 3])),
        ("int4[]", "{}", json!([])),
        ("text[]", "{\"a,b\",\"NULL\",\"\"}", json!(["a,b", "NULL", ""])),
        ("int4[]", "[2:3]={7,8}", json!({"bounds": [[2, 3]], "values": [7, 8]})),
        ("int4[]", "[0:1][5:5]={{7},{8}}", json!({"bounds": [[0, 1], [5, 5]], "values": [[7], [8]]})),
        ("int4[]", "{{{1},{2}},{{3},{4}}}", json!([[[1], [2]], [[3], [4]]])),
        ("json[]", "{\"[1,2]\",\"{}\"}", json!([[1, 2], {}])),
        ("box[]", "{(1,1),(0,0);(2,2),(1,1)}", json!(["(1,1),(0,0)", "(2,2),(1,1)"])),
        ("int4range", "[1,5]", json!({"lower": 1, "upper": 6, "bounds": "[)"})),
        ("int4range", "(,5)", json!({"lower": null, "upper": 5, "bounds": "()"})),
        ("int4range", "empty", json!({"empty": true})),
        ("numrange", "(1.5,2.5]", json!({"lower": 1.5, "upper": 2.5, "bounds": "(]"})),
        (
            "int4multirange",
            "{[1,3),[5,7)}",
            json!([{"lower": 1, "upper": 3, "bounds": "[)"}, {"lower": 5, "upper": 7, "bounds": "[)"}]),
        ),
        (
            "int4range[]",
            "{\"[1,2)\",empty}",
            json!([{"lower": 1, "upper": 2, "bounds": "[)"}, {"empty": true}]),
        ),
        ("mood", "so so", json!("so so")),
        ("mood[]", "{good,\"so so\"}", json!(["good", "so so"])),
        (
            "pair",
            "(1,\"x, \"\"y\"\"\",\"{good,NULL}\")",
            json!({"a": 1, "b": "x, \"y\"", "m": ["good", null]}),
        ),
        ("pair", "(,,)", json!({"a": null, "b": null, "m": null})),
        ("pair[]", "{\"(1,a,)\",NULL}", json!([{"a": 1, "b": "a", "m": null}, null])),
        ("pairs", "{\"(2,b,{})\"}", json!([{"a": 2, "b": "b", "m": []}])),
        ("positive", "1.5", json!(1.5)),
        ("positive[]", "{1,2}", json!([1, 2])),
        ("floats", "[0.1,0.2)", json!({"lower": 0.1, "upper": 0.2, "bounds": "[)"})),
        ("hstore", "a=>1, \"b c\"=>NULL", json!({"a": "1", "b c": null})),
        ("oidvector", "1 2", json!([1, 2])),
    ] {
        assert_eq!(round(&bench, name, literal).await, expected, "{name} {literal}");
    }
    for (sql, expected) in [
        ("SELECT ROW(1, 'a b', NULL)", json!(["1", "a b", null])),
        ("SELECT pg_sleep(0)", json!(null)),
        ("SELECT NULL", json!(null)),
        ("SELECT c FROM pg_class c WHERE relname = 'pg_type'", json!("object")),
        ("SELECT 'x'::unknown", json!("x")),
        ("SELECT json '[1,\n 2]'", json!([1, 2])),
    ] {
        let given = value(&bench, sql, json!([])).await;
        if expected == json!("object") {
            assert_eq!(given["relname"], json!("pg_type"), "{sql}");
        } else {
            assert_eq!(given, expected, "{sql}");
        }
    }
    database.drop_database().await;
}

/// Catalogues have columns of every type, also those without values that can be written.
#[tokio::test]
async fn every_catalogue_can_be_read() {
    let database = TestDatabase::new("catalogues").await;
    let bench = bench(&spec(&database.reader));
    let admin = client(&database.admin).await;
    let names = admin
        .query(
            "SELECT c.relname::text FROM pg_class c WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v') \
             AND has_table_privilege('pg_read_all_data', c.oid, 'SELECT') ORDER BY 1",
            &[],
        )
        .await
        .unwrap();
    let mut rows = 0;
    for row in &names {
        let name: String = row.get(0);
        let both = bench
            .call(
                "db_query",
                json!({"sql": format!("SELECT c, c.* FROM pg_catalog.{name} c"), "max_rows": 50}),
            )
            .await;
        match both {
            Ok(both) => {
                for row in both["rows"].as_array().unwrap() {
                    let whole = row[0].as_object().unwrap_or_else(|| panic!("{name}: {}", row[0]));
                    let fields: Vec<Value> = whole.values().cloned().collect();
                    assert_eq!(fields, row.as_array().unwrap()[1..], "{name}");
                    rows += 1;
                }
            }
            Err(error) => assert!(error.text().contains("42501"), "{name}: {error}"),
        }
    }
    assert!(names.len() > 100 && rows > 1000, "{} {rows}", names.len());
    database.drop_database().await;
}
