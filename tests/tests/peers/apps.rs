//! MCP Apps behind the hub: several servers, one client.

use anyhow::{Context, Result};
use octo_tests::eventually;
use octo_tests::hub_process::{HubHome, RunningHub};
use octo_tests::mcp_clients::{Exchange, LegacyClient, ModernClient, answer_nothing};
use octo_tests::test_binaries::service_variable;
use serde_json::{Value, json};

/// A server with an app, in Python: `NAME` is in what it replies, `turn` changes its HTML and the type of it, and
/// `capabilities` returns what the client has declared.
const APP_SERVER: &str = r#"
import json, os, sys
NAME, html, kind, declared = os.environ["NAME"], "<p>first</p>", "text/html;profile=mcp-app", {}
def tool(name, **meta):
    return {"name": name, "inputSchema": {"type": "object"}, "_meta": {"ui": meta} if meta else {}}
APP = "ui://maps/dash" if NAME == "evil" else "ui://board/app.html"
TOOLS = [tool("show", resourceUri=APP), tool("refresh", resourceUri=APP, visibility=["app"]), tool("zoom_" + NAME, visibility=["app"]),
    tool("plan_" + NAME, visibility=["model"]), tool("turn"), tool("capabilities")]
if NAME == "docs": TOOLS = [tool("delete_page"), tool("plan_docs", visibility=["model"])]
def answer(method, params):
    global html, kind, declared
    if method == "initialize":
        declared = params["capabilities"]
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "resources": {}, "extensions": {"x.test/shared": {"depth": 2}}},
            "serverInfo": {"name": NAME, "version": "1"}}
    if method == "tools/list": return {"tools": TOOLS}
    if method == "resources/list": return {"resources": [{"uri": "notes://" + NAME, "name": "notes"}]}
    if method == "resources/templates/list": return {"resourceTemplates": []}
    if method == "resources/read":
        if params["uri"] != APP: return None
        return {"contents": [{"uri": APP, "mimeType": kind, "text": html + "\u200b" + NAME,
            "_meta": {"ui": {"csp": {"connectDomains": ["https://x.test"]}}}}]}
    if method == "tools/call":
        name = params["name"]
        if name == "turn": html, kind = "<p>second</p>", params.get("arguments", {}).get("type", kind)
        text = json.dumps(declared) if name == "capabilities" else NAME + " " + name
        if name.startswith("zoom"): text += " " + "x" * 300000
        return {"content": [{"type": "text", "text": text}, {"type": "resource_link", "uri": APP, "name": "app"}],
            **({"structuredContent": {"app": NAME}} if name == "turn" or name.startswith("zoom") else {})}
    return {} if method == "ping" else None
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message: continue
    result = answer(message["method"], message.get("params", {}))
    reply = {"result": result} if result is not None else {"error": {"code": -32601, "message": "no " + message["method"]}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)
"#;

struct AppHub {
    home: HubHome,
    hub: RunningHub,
}

fn app_server(name: &str, trust: &str) -> Value {
    json!({"command": "python3", "args": ["-c", APP_SERVER], "env": {"NAME": name}, "trust": trust})
}

impl AppHub {
    async fn new(trust: &str) -> Result<Self> {
        let server = |name: &str| app_server(name, trust);
        let home = HubHome::new(
            &json!({"servers": {"maps": server("maps"), "pay": server("pay"), "docs": server("docs")}}),
        )?;
        let hub = home.serve().await?;
        hub.until_listed("maps__show").await?;
        hub.until_listed("pay__show").await?;
        hub.until_listed("docs__delete_page").await?;
        Ok(Self { home, hub })
    }

    async fn client(&self) -> Result<LegacyClient> {
        LegacyClient::connect(&self.hub.mcp_url(), shows_apps(), answer_nothing).await
    }
}

fn shows_apps() -> Value {
    json!({"extensions": {
        "io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]},
        "x.test/shared": {},
        "x.test/unknown": {},
    }})
}

async fn tools(client: &LegacyClient) -> Result<Vec<Value>> {
    let listed = client.call("tools/list", json!({})).await?;
    Ok(listed.result()?["tools"].as_array().context("no tools")?.clone())
}

fn text(exchange: &Exchange) -> String {
    let content = &exchange.answer["result"]["content"][0]["text"];
    content.as_str().map_or_else(|| exchange.answer.to_string(), str::to_owned)
}

async fn read(client: &LegacyClient, uri: &str) -> Result<Value> {
    Ok(client.call("resources/read", json!({"uri": uri})).await?.answer)
}

#[tokio::test]
async fn apps_of_several_servers_are_kept_apart() -> Result<()> {
    let hub = AppHub::new("hold").await?;
    let client = hub.client().await?;
    let all = tools(&client).await?;
    let meta =
        |name: &str| all.iter().find(|tool| tool["name"] == name).map(|tool| tool["_meta"]["ui"].clone());
    assert_eq!(meta("maps__show"), Some(json!({"resourceUri": "ui://maps/board/app.html"})));
    assert_eq!(
        meta("pay__refresh"),
        Some(json!({"resourceUri": "ui://pay/board/app.html", "visibility": ["app"]}))
    );
    for name in ["time_now", "docs__delete_page"] {
        assert_eq!(meta(name), Some(json!({"visibility": ["model"]})), "no app may call {name}");
    }
    for server in ["maps", "pay"] {
        let answer = read(&client, &format!("ui://{server}/board/app.html")).await?;
        let contents = &answer["result"]["contents"][0];
        assert_eq!(contents["text"], format!("<p>first</p>\u{200b}{server}"), "unchanged: {answer}");
        assert_eq!(contents["uri"], format!("ui://{server}/board/app.html"));
        assert_eq!(contents["_meta"]["ui"]["csp"]["connectDomains"][0], "https://x.test");
    }
    let shown = client.call_tool("maps__show", json!({})).await?;
    assert_eq!(shown.result()?["content"][1]["uri"], "ui://maps/board/app.html");
    for wrong in
        ["ui://maps/other.html", "ui://board/other.html", "ui://nobody/board/app.html", "ui://board/app.html"]
    {
        let answer = read(&client, wrong).await?;
        assert!(answer.get("error").is_some(), "{wrong}: {answer}");
    }
    Ok(())
}

#[tokio::test]
async fn a_uri_that_names_a_server_is_never_that_of_another() -> Result<()> {
    let names = ["maps", "evil", "board"];
    let servers: serde_json::Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), app_server(name, "hold"))).collect();
    let home = HubHome::new(&json!({"servers": servers}))?;
    let hub = home.serve().await?;
    for name in names {
        hub.until_listed(&format!("{name}__show")).await?;
    }
    let client = LegacyClient::connect(&hub.mcp_url(), shows_apps(), answer_nothing).await?;
    let refused = read(&client, "ui://maps/dash").await?;
    assert!(refused.get("error").is_some(), "{refused}");
    for (uri, known, server) in [
        ("ui://evil/maps/dash", "ui://evil/maps/dash", "evil"),
        // From inside an app of a server that names its URIs after itself.
        ("ui://board/app.html", "ui://board/board/app.html", "board"),
    ] {
        let answer = read(&client, uri).await?;
        let contents = &answer["result"]["contents"][0];
        assert_eq!(contents["uri"], known, "{answer}");
        assert_eq!(contents["text"], format!("<p>first</p>\u{200b}{server}"));
    }
    Ok(())
}

#[tokio::test]
async fn an_app_reaches_the_tools_of_its_server_by_their_own_names() -> Result<()> {
    let hub = AppHub::new("hold").await?;
    let client = hub.client().await?;
    let call = async |name: &str| Ok::<_, anyhow::Error>(text(&client.call_tool(name, json!({})).await?));
    assert!(call("zoom_maps").await?.contains("not found"), "no app is open");
    client.call_tool("maps__show", json!({})).await?;
    let zoomed = call("zoom_maps").await?;
    assert!(zoomed.starts_with("maps zoom_maps x"), "{}", &zoomed[..200.min(zoomed.len())]);
    assert_eq!(
        zoomed.len(),
        "maps zoom_maps ".len() + 300_000,
        "an app cannot read the rest of a truncated result"
    );
    assert!(call("plan_maps").await?.contains("not found"), "it is for the model only");
    assert!(call("zoom_pay").await?.contains("not found"), "its app is not open");
    assert!(
        call("refresh").await?.contains("not found"),
        "two servers have it: nobody can tell which app is calling"
    );
    read(&client, "ui://pay/board/app.html").await?;
    assert!(call("zoom_pay").await?.starts_with("pay zoom_pay"));
    // A server without apps cannot be opened.
    for uri in ["ui://docs/x", "ui://docs/board/app.html"] {
        read(&client, uri).await?;
    }
    client.call_tool("docs__plan_docs", json!({})).await?;
    assert!(call("delete_page").await?.contains("not found"));
    // Another client has opened nothing.
    let other = hub.client().await?;
    assert!(text(&other.call_tool("zoom_maps", json!({})).await?).contains("not found"));
    assert!(text(&other.call_tool("pay__refresh", json!({})).await?).starts_with("pay refresh"));
    Ok(())
}

/// No model reads what an app gets.
#[tokio::test]
async fn an_app_gets_structured_results_where_models_get_text() -> Result<()> {
    let hub = AppHub::new("hold").await?;
    let url = format!("{}?structure=off", hub.hub.mcp_url());
    let client = LegacyClient::connect(&url, shows_apps(), answer_nothing).await?;
    client.call_tool("maps__show", json!({})).await?;
    let zoomed = client.call_tool("zoom_maps", json!({})).await?.result()?.clone();
    assert_eq!(zoomed["structuredContent"]["app"], "maps");
    let turned = client.call_tool("maps__turn", json!({})).await?.result()?.clone();
    assert!(turned["content"].is_array() && turned.get("structuredContent").is_none(), "{turned}");
    Ok(())
}

#[tokio::test]
async fn tools_for_apps_do_not_exist_for_other_clients() -> Result<()> {
    let hub = AppHub::new("hold").await?;
    let plain = LegacyClient::connect(&hub.hub.mcp_url(), json!({}), answer_nothing).await?;
    let all = tools(&plain).await?;
    let native = all.iter().find(|tool| tool["name"] == "time_now").context("no time_now")?;
    assert!(native["_meta"]["ui"].is_null(), "{native}");
    let names: Vec<Value> = all.iter().map(|tool| tool["name"].clone()).collect();
    assert!(names.contains(&json!("maps__show")) && !names.contains(&json!("maps__refresh")), "{names:?}");
    let refused = text(&plain.call_tool("maps__refresh", json!({})).await?);
    assert!(refused.contains("not found") && !refused.contains("Did you mean"), "{refused}");
    plain.call_tool("maps__show", json!({})).await?;
    assert!(!text(&plain.call_tool("refresh", json!({})).await?).contains("maps refresh"));
    let modern = ModernClient::new(&hub.hub.mcp_url(), shows_apps(), answer_nothing);
    let listed = modern.request("tools/list", json!({})).await?;
    assert!(listed.result()?.to_string().contains("maps__refresh"));
    assert!(text(&modern.call_tool("maps__refresh", json!({})).await?).starts_with("maps refresh"));
    Ok(())
}

#[tokio::test]
async fn a_changed_app_is_held_until_it_is_accepted() -> Result<()> {
    let hub = AppHub::new("hold").await?;
    let client = hub.client().await?;
    let html = async || read(&client, "ui://maps/board/app.html").await;
    assert!(html().await?.to_string().contains("first"));
    for kind in ["text/html", "text/html;profile=\"mcp-app\"", "text/plain", "text/html;profile=mcp-app"] {
        client.call_tool("maps__turn", json!({"type": kind})).await?;
        let refused = html().await?.to_string();
        assert!(!refused.contains("second") && refused.contains("servers diff maps"), "{kind}: {refused}");
    }
    let (code, out, _) = hub.home.run(&["servers", "diff", "maps"]).await?;
    assert!(code == 1 && out.contains("app ui://board/app.html; not shown"), "{out}");
    let (code, _, err) = hub.home.run(&["servers", "diff", "maps", "--accept"]).await?;
    assert_eq!(code, 0, "{err}");
    assert!(html().await?.to_string().contains("second"));
    let follows = AppHub::new("follow").await?;
    let client = follows.client().await?;
    read(&client, "ui://maps/board/app.html").await?;
    client.call_tool("maps__turn", json!({})).await?;
    assert!(read(&client, "ui://maps/board/app.html").await?.to_string().contains("second"));
    Ok(())
}

#[tokio::test]
async fn extensions_are_those_that_both_sides_declare() -> Result<()> {
    let hub = AppHub::new("hold").await?;
    let modern = ModernClient::new(&hub.hub.mcp_url(), shows_apps(), answer_nothing);
    let found = eventually("the servers are listed", async || {
        let found = modern.request("server/discover", json!({})).await.ok()?;
        let extensions = found.result().ok()?["capabilities"]["extensions"].clone();
        extensions.get("x.test/shared").is_some().then_some(extensions)
    })
    .await?;
    assert_eq!(found["x.test/shared"], json!({"depth": 2}));
    assert!(
        found.get("x.test/unknown").is_none() && found.get("io.modelcontextprotocol/ui").is_some(),
        "{found}"
    );
    let plain = ModernClient::new(&hub.hub.mcp_url(), json!({}), answer_nothing);
    let found = plain.request("server/discover", json!({})).await?;
    let extensions = found.result()?["capabilities"]["extensions"].clone();
    assert!(extensions.get("x.test/shared").is_none(), "{extensions}");
    let told = text(&modern.call_tool("maps__capabilities", json!({})).await?);
    let told: Value = serde_json::from_str(&told).with_context(|| told.clone())?;
    assert_eq!(told["extensions"]["io.modelcontextprotocol/ui"]["mimeTypes"][0], "text/html;profile=mcp-app");
    Ok(())
}

/// The smallest PDF that viewers accept.
const PDF: &str = "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n\
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 100]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n";

/// Example servers of the extension's repository behind one hub, shown by the official bridge in Chromium.
#[tokio::test]
async fn example_apps_are_shown_and_call_back() -> Result<()> {
    let (node, modules) = (service_variable("NODE24")?, service_variable("APPS")?);
    let home = HubHome::new(&json!({}))?;
    let pdf = home.dir.path().join("small.pdf");
    std::fs::write(&pdf, PDF)?;
    let server = |name: &str, more: &[&str]| {
        let script = format!("{modules}/@modelcontextprotocol/server-{name}/dist/index.js");
        let args: Vec<&str> = [script.as_str(), "--stdio"].into_iter().chain(more.iter().copied()).collect();
        json!({"command": node, "args": args})
    };
    let pdf = pdf.to_string_lossy();
    let servers = json!({"servers": {
        "map": server("map", &[]),
        "pdf": server("pdf", &[&pdf]),
        "budget": server("budget-allocator", &[]),
        "three": server("threejs", &[]),
        "react": server("basic-react", &[]),
    }});
    std::fs::write(home.dir.path().join("servers.yaml"), servers.to_string())?;
    let hub = home.serve().await?;
    let apps = json!({
        "map__show-map": {"arguments": {}, "call": {"name": "show-map", "arguments": {}}},
        "pdf__display_pdf": {"arguments": {"url": pdf}, "call": {"name": "list_pdfs", "arguments": {}}},
        "budget__get-budget-data": {"arguments": {}, "call": {"name": "get-budget-data", "arguments": {}}},
        "three__show_threejs_scene": {"arguments": {}, "call": {"name": "learn_threejs", "arguments": {}}},
        "react__get-time": {"arguments": {}, "click": "Get Server Time", "call": {"name": "get-time", "arguments": {}}},
    });
    for name in apps.as_object().context("no apps")?.keys() {
        hub.until_listed(name).await?;
    }
    let playwright = service_variable("PLAYWRIGHT_MCP")?;
    let playwright = playwright.strip_suffix("/@playwright/mcp/cli.js").context("an unexpected path")?;
    let plan = json!({"url": hub.mcp_url(), "modules": modules, "playwright": playwright, "chromium": "/usr/bin/chromium",
        "apps": apps, "pictures": std::env::var("APP_PICTURES").ok()});
    let shown = crate::peer_scripts::run_script(&node, "apps.mjs", &plan).await?;
    for (name, shown) in shown.as_object().context("no results")? {
        assert!(shown["initialized"]["name"].is_string(), "{name}: {shown}");
        assert!(shown["elements"].as_u64() > Some(3), "{name} is empty: {shown}");
        assert!(
            shown["answer"]["content"].is_array() && shown["answer"]["isError"] != true,
            "{name}: {shown}"
        );
    }
    let calls = |name: &str| shown[name]["calls"].to_string();
    assert!(calls("react__get-time").contains("get-time"), "{shown}");
    assert!(calls("pdf__display_pdf").contains("read_pdf_bytes"), "{shown}");
    Ok(())
}
