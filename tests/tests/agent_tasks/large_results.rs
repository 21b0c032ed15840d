//! One item out of three megabytes of JSON.

use crate::cost_agent::Agent;
use crate::loopback_site::serve;
use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::routing::{any, get};
use octo_tests::hub_process::HubHome;
use serde_json::{Value, json};

const ORDERS: usize = 6_500;
/// Total of the wanted item.
const WANTED_TOTAL: f64 = 4_217.5;

fn orders() -> String {
    let order = |n: usize| {
        let total = n as f64 + 0.5;
        let lines: Vec<Value> = (0..5)
            .map(|line| json!({"sku": format!("SKU-{n}-{line}"), "count": line + 1, "note": "x".repeat(40)}))
            .collect();
        json!({"id": format!("ord-{n}"), "total": total, "customer": {"name": format!("Customer {n}")}, "lines": lines})
    };
    json!({"page": 1, "orders": (0..ORDERS).map(order).collect::<Vec<_>>()}).to_string()
}

/// The API, and its OpenAPI document.
async fn start_api() -> Result<(HubHome, String)> {
    let body = orders();
    ensure!(body.len() > 3_000_000, "only {} bytes", body.len());
    let json = |body: String| ([("content-type", "application/json")], body);
    let router = Router::new()
        .route("/orders", get(async move || json(body)))
        .route("/created", any(async move || json(r#"{"order": {"id": "ord-new"}}"#.to_owned())))
        .route("/page", get(async || axum::response::Html("<!doctype html><p>Please log in")))
        .route(
            "/huge",
            get(async || ([("content-type", "application/json")], format!("\"{}\"", "x".repeat(17 << 20)))),
        );
    let base = serve(router).await?;
    Ok((HubHome::new(&json!({"net": {"allow": ["127.0.0.1"]}}))?, base))
}

#[tokio::test]
async fn one_item_of_three_megabytes_costs_little() -> Result<()> {
    let (home, base) = start_api().await?;
    let mut agent = Agent::new(&home).await?;
    let url = format!("{base}/orders");
    // A model that guesses the structure is told what there is.
    let guess = agent
        .try_call("fetch_json", json!({"url": url, "jq": ".items[] | select(.id == \"ord-4217\")"}))
        .await?;
    ensure!(guess.is_error && guess.text.contains("`page`, `orders`"), "{}", guess.text);
    let first = agent.call("fetch_json", json!({"url": url, "jq": ".orders[0] | keys"})).await?;
    assert_eq!(first["json"], json!(["customer", "id", "lines", "total"]));
    let select = ".orders[] | select(.id == \"ord-4217\") | {total, name: .customer.name}";
    let found = agent.call("fetch_json", json!({"url": url, "jq": select})).await?;
    assert_eq!(found["json"], json!({"total": WANTED_TOTAL, "name": "Customer 4217"}));
    agent.finish("one item of 3 MB of JSON, with jq", 3, 1_000)
}

#[tokio::test]
async fn every_tool_that_gives_json_selects_from_it() -> Result<()> {
    let (home, base) = start_api().await?;
    let document = json!({
        "openapi": "3.1.0", "info": {"title": "Orders", "version": "1"}, "servers": [{"url": base}],
        "paths": {"/orders": {"get": {"operationId": "listOrders", "summary": "All orders", "responses": {}}}},
    });
    std::fs::write(home.workspace().join("orders.json"), document.to_string())?;
    let mut agent = Agent::new(&home).await?;
    let url = format!("{base}/orders");
    let count = ".orders | length";
    let asked = agent.call("http_request", json!({"method": "GET", "url": url, "jq": count})).await?;
    assert_eq!((&asked["json"], &asked["body"]), (&json!(ORDERS), &json!("")));
    agent.call("openapi_load", json!({"name": "orders", "spec_path": "orders.json"})).await?;
    let several = ".orders[:3][] | .id";
    let call = json!({"name": "orders", "path": "listOrders", "method": "GET", "jq": several});
    let called = agent.call("openapi_call", call).await?;
    assert_eq!(called["body"], json!(["ord-0", "ord-1", "ord-2"]));
    agent.finish("JSON of HTTP and OpenAPI, with jq", 3, 1_000)?;
    // A large selection is truncated and kept like any other reply.
    let much = agent.call("fetch_json", json!({"url": url, "jq": "[.orders[] | {id, total}]"})).await?;
    let handle = much["result_handle"].as_str().context("no handle")?;
    let last = agent.call("result_read", json!({"handle": handle, "jq": ".json[6499].id"})).await?;
    assert_eq!(last["text"], "\"ord-6499\"\n");
    for (tool, arguments, words) in [
        ("fetch_json", json!({"url": url, "jq": ".orders["}), "`page`, `orders`"),
        ("fetch_json", json!({"url": url, "jq": "nosuch"}), "there is no filter `nosuch`"),
        ("fetch_json", json!({"url": url, "jq": ".page | nan | {(tostring): .}, infinite"}), "not JSON"),
        ("fetch_json", json!({"url": url, "jq": "[.orders[], .orders[]]"}), "exceeds 4194304 bytes"),
        ("fetch_json", json!({"url": format!("{base}/page"), "jq": ".a"}), "is not JSON"),
        (
            "fetch_json",
            json!({"url": format!("{base}/huge"), "jq": "length"}),
            "the limit for jq is 16777216",
        ),
        ("http_request", json!({"method": "GET", "url": format!("{base}/page"), "jq": ".a"}), "is not JSON"),
        (
            "openapi_call",
            json!({"name": "orders", "path": "listOrders", "method": "GET", "jq": ".items[0].id.x[]"}),
            "`page`, `orders`",
        ),
    ] {
        let reply = agent.try_call(tool, arguments.clone()).await?;
        ensure!(reply.is_error && reply.text.contains(words), "{tool} {arguments}: {}", reply.text);
        ensure!(reply.text.len() < 1_500, "{tool} {arguments}: {} bytes", reply.text.len());
    }
    let wrong = json!({"method": "POST", "url": format!("{base}/created"), "json": {}, "jq": ".order[0].id"});
    let sent = agent.call("http_request", wrong).await?;
    ensure!(sent["body"].as_str().is_some_and(|body| body.contains("ord-new")), "{sent}");
    ensure!(sent["notice"].as_str().is_some_and(|notice| notice.contains("The request was sent")), "{sent}");
    Ok(())
}

#[tokio::test]
async fn one_item_of_three_megabytes_is_read_by_its_handle() -> Result<()> {
    let (home, base) = start_api().await?;
    let mut agent = Agent::new(&home).await?;
    let preview = agent.call("fetch_json", json!({"url": format!("{base}/orders")})).await?;
    let handle = preview["result_handle"].as_str().context("no handle")?;
    let select = ".json.orders[] | select(.id == \"ord-4217\") | .total";
    let found = agent.call("result_read", json!({"handle": handle, "jq": select})).await?;
    assert_eq!(found["text"].as_str().map(str::trim), Some(WANTED_TOTAL.to_string().as_str()));
    agent.finish("one item of 3 MB of JSON, by its handle", 2, 3_000)
}
