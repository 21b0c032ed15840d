//! Surfaces: which tools MCP clients are listed.

use crate::hub_fixture::{HubFixture, ScriptedSource};
use octo_hub::{
    Change, ClientEpoch, ClientFeatures, Decision, ListOptions, ListRequest, PolicySettings, Profile,
    ProfileSettings, Rule, Structure, Surface, SurfaceSettings,
};
use octo_model::{Caller, ItemKind};
use octo_toolkit::{Source, SourceState};
use serde_json::{Value, json};
use std::sync::Arc;

fn tools(count: usize) -> Vec<Value> {
    let tool = |at: usize| json!({"name": format!("t{at}"), "description": "x".repeat(400), "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}});
    (0..count).map(tool).collect()
}

fn settings(surface: Surface) -> SurfaceSettings {
    SurfaceSettings {
        tools: surface,
        listed: vec!["up__t1".into(), "up__t2".into()],
        ..SurfaceSettings::default()
    }
}

fn fixture(source: &Arc<ScriptedSource>, surface: Surface) -> HubFixture {
    HubFixture::new(vec![Arc::clone(source) as Arc<dyn Source>], |parts| {
        parts.profiles = vec![Profile::everything_with(&settings(surface)).unwrap()];
    })
}

async fn list(bench: &HubFixture, client: &ClientEpoch, profile: &str, options: ListOptions) -> Vec<Value> {
    list_as(&Caller::local(), bench, client, profile, options).await
}

async fn list_as(
    caller: &Caller,
    bench: &HubFixture,
    client: &ClientEpoch,
    profile: &str,
    options: ListOptions,
) -> Vec<Value> {
    let features = ClientFeatures::default();
    let request = ListRequest { kind: ItemKind::Tool, caller, features, options, cursor: None };
    let page = bench.hub.list_in_epoch(client, profile, request);
    page.await.unwrap().items.to().unwrap()
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// Denies tools of one pattern, and allows the rest.
fn denying(pattern: &str) -> PolicySettings {
    let denied = json!({"name": "no", "tools": [pattern], "decision": "deny"});
    let rules: Vec<Rule> = vec![serde_json::from_value(denied).unwrap()];
    PolicySettings { default: Decision::Allow, rules }
}

const FIND: [&str; 3] = ["result_read", "tools_call", "tools_find"];
const SERVERS: [&str; 7] =
    ["result_read", "tools_call", "tools_find", "up__t0", "up__t1", "up__t2", "up__t3"];
const PROFILE: [&str; 5] = ["result_read", "tools_call", "tools_find", "up__t1", "up__t2"];

#[tokio::test]
async fn each_surface_lists_its_tools() {
    let source = ScriptedSource::new("up", tools(4));
    for surface in Surface::ALL {
        let bench = fixture(&source, Surface::Full);
        let options = ListOptions { surface: Some(surface), structure: None };
        let listed = list(&bench, &ClientEpoch::default(), "", options).await;
        let expected: &[&str] = match surface {
            Surface::Auto | Surface::Full => &["result_read", "up__t0", "up__t1", "up__t2", "up__t3"],
            Surface::Servers => &SERVERS,
            Surface::Profile => &PROFILE,
            Surface::Find => &FIND,
            // This hub runs no programs.
            Surface::Code => &["result_read", "tools_find"],
        };
        assert_eq!(names(&listed), expected, "{surface:?}");
        let bench = fixture(&source, surface);
        let listed = list(&bench, &ClientEpoch::default(), "", ListOptions::default()).await;
        assert_eq!(names(&listed), expected, "{surface:?}");
    }
}

#[tokio::test]
async fn auto_is_decided_once_per_epoch_by_size() {
    let source = ScriptedSource::new("up", tools(3));
    let bench = fixture(&source, Surface::Auto);
    let client = ClientEpoch::default();
    assert_eq!(names(&list(&bench, &client, "", ListOptions::default()).await).len(), 4);
    let mut changes = bench.hub.changes();
    source.relist(SourceState::Ready, tools(200));
    while !matches!(changes.recv().await.unwrap(), Change::List(ItemKind::Tool)) {}
    // The list of this client only grows.
    assert_eq!(list(&bench, &client, "", ListOptions::default()).await.len(), 201);
    let choice = bench.hub.surface("", &Caller::local(), None).unwrap();
    assert_eq!(choice.surface, Surface::Profile);
    let why = choice.reason.to_string();
    assert!(
        why.starts_with("All 201 tools take about ")
            && why.contains("The 2 tools of `surface.listed` take about"),
        "{why}"
    );
    let fresh = list(&bench, &ClientEpoch::default(), "", ListOptions::default()).await;
    assert_eq!(fresh.len(), 201, "clients join the epoch of those that came before");

    let bench = fixture(&source, Surface::Auto);
    assert_eq!(names(&list(&bench, &ClientEpoch::default(), "", ListOptions::default()).await), PROFILE);
    let none = ProfileSettings { listed: vec!["nothing".into()], ..ProfileSettings::default() };
    let own: ProfileSettings =
        serde_json::from_value(json!({"servers": ["up"], "as": {"x": {"tool": "up__t1"}}})).unwrap();
    let bench = HubFixture::new(vec![Arc::clone(&source) as Arc<dyn Source>], |parts| {
        let made = |name: &str, profile: &ProfileSettings| {
            Profile::new(name, profile).unwrap().with_surface(profile, &SurfaceSettings::default()).unwrap()
        };
        parts.profiles = vec![made("none", &none), made("own", &own)];
    });
    assert_eq!(bench.hub.surface("none", &Caller::local(), None).unwrap().surface, Surface::Find);
    assert_eq!(bench.hub.surface("own", &Caller::local(), None).unwrap().surface, Surface::Full);
    assert_eq!(
        bench.hub.surface("own", &Caller::local(), Some(Surface::Find)).unwrap().surface,
        Surface::Find
    );
}

#[tokio::test]
async fn auto_is_decided_for_each_caller() {
    let source = ScriptedSource::new("up", tools(200));
    let denied = json!({"name": "no", "tools": ["up__*"], "callers": ["ada"], "decision": "deny"});
    let rules = vec![serde_json::from_value(denied).unwrap()];
    let bench = HubFixture::new(vec![source as Arc<dyn Source>], |parts| {
        parts.profiles = vec![Profile::everything_with(&settings(Surface::Auto)).unwrap()];
        parts.policy = PolicySettings { default: Decision::Allow, rules };
    });
    let [ada, bob] = ["ada", "bob"].map(Caller::named);
    let (first, second) = (ClientEpoch::default(), ClientEpoch::default());
    for _ in 0..2 {
        let of_ada = list_as(&ada, &bench, &first, "", ListOptions::default()).await;
        assert_eq!(names(&of_ada), ["result_read"]);
        assert_eq!(names(&list_as(&bob, &bench, &second, "", ListOptions::default()).await), PROFILE);
    }
}

#[tokio::test]
async fn auto_expects_much_while_sources_are_starting() {
    let source = ScriptedSource::new("up", tools(3));
    let slow = ScriptedSource::new("slow", vec![]);
    slow.relist(SourceState::Starting, vec![]);
    let sources: Vec<Arc<dyn Source>> = vec![Arc::clone(&source) as Arc<dyn Source>, Arc::clone(&slow) as _];
    let bench = HubFixture::new(sources, |parts| {
        parts.profiles = vec![Profile::everything_with(&settings(Surface::Auto)).unwrap()];
    });
    let early = ClientEpoch::default();
    assert!(
        list(&bench, &early, "", ListOptions::default())
            .await
            .iter()
            .any(|tool| tool["name"] == "tools_call")
    );
    let choice = bench.hub.surface("", &Caller::local(), None).unwrap();
    assert_eq!(choice.surface, Surface::Servers);
    assert_eq!(choice.reason.to_string(), "Not all servers have listed their tools yet.");
    let mut changes = bench.hub.changes();
    slow.relist(SourceState::Ready, vec![json!({"name": "late", "inputSchema": {"type": "object"}})]);
    while !matches!(changes.recv().await.unwrap(), Change::List(ItemKind::Tool)) {}
    // Clients that come later do not join the early one.
    let listed = list(&bench, &ClientEpoch::default(), "", ListOptions::default()).await;
    assert_eq!(names(&listed), ["result_read", "slow__late", "up__t0", "up__t1", "up__t2"]);
    let listed = list(&bench, &early, "", ListOptions::default()).await;
    assert_eq!(names(&listed).len(), 7, "{listed:?}");
}

#[tokio::test]
async fn a_profile_of_other_servers_has_the_tools_of_its_surface() {
    let source = ScriptedSource::new("up", tools(4));
    let few = ProfileSettings {
        servers: vec!["up".into()],
        surface: Some(Surface::Find),
        ..ProfileSettings::default()
    };
    for (denied, expected) in [("none", vec!["tools_find", "tools_call"]), ("tools_call", vec!["tools_find"])]
    {
        let bench = HubFixture::new(vec![Arc::clone(&source) as Arc<dyn Source>], |parts| {
            let made = Profile::new("few", &few).unwrap();
            parts.profiles = vec![made.with_surface(&few, &SurfaceSettings::default()).unwrap()];
            parts.policy = denying(denied);
        });
        let listed = list(&bench, &ClientEpoch::default(), "few", ListOptions::default()).await;
        assert_eq!(names(&listed), expected);
        let all = ListOptions { surface: Some(Surface::Full), structure: None };
        let listed = list(&bench, &ClientEpoch::default(), "few", all).await;
        assert_eq!(names(&listed), ["up__t0", "up__t1", "up__t2", "up__t3"]);
    }
}

#[tokio::test]
async fn definitions_have_no_schema_of_structure_that_is_off() {
    let source = ScriptedSource::new("up", tools(1));
    let bench = fixture(&source, Surface::Profile);
    for (structure, expected) in [(Structure::On, true), (Structure::Off, false)] {
        let options = ListOptions { surface: Some(Surface::Full), structure: Some(structure) };
        let listed = list(&bench, &ClientEpoch::default(), "", options).await;
        assert!(listed.iter().all(|tool| tool.get("outputSchema").is_some() == expected), "{structure:?}");
        let options = ListOptions { surface: Some(Surface::Find), structure: Some(structure) };
        let listed = list(&bench, &ClientEpoch::default(), "", options).await;
        let hub_tools = listed.iter().filter(|tool| tool["name"] != "result_read");
        for tool in hub_tools {
            assert!(tool.get("outputSchema").is_none() && tool.get("_meta").is_none(), "{tool}");
        }
    }
}

#[tokio::test]
async fn instructions_name_the_servers_of_tools_that_are_not_listed() {
    let source = ScriptedSource::new("up", tools(4));
    let bench = fixture(&source, Surface::Profile);
    let of = async |client: &ClientEpoch, caller: &Caller, surface: Option<Surface>| {
        bench.hub.instructions(client, "", caller, ListOptions { surface, structure: None }).await
    };
    let (client, local) = (ClientEpoch::default(), Caller::local());
    let shown = of(&client, &local, None).await;
    assert!(shown.contains("find them with tools_find") && shown.ends_with("They belong to up."), "{shown}");
    // Clients that share an epoch may ask for different surfaces.
    let full = of(&client, &local, Some(Surface::Full)).await;
    assert!(!full.contains("tools_find") && full.contains("result_read"), "{full}");
    // A client keeps what it got first.
    let mut changes = bench.hub.changes();
    source.relist(SourceState::Ready, vec![]);
    while !matches!(changes.recv().await.unwrap(), Change::Items) {}
    assert_eq!(of(&client, &local, None).await, shown);
}

#[tokio::test]
async fn instructions_name_only_what_the_caller_may_use() {
    let source = ScriptedSource::new("up", tools(4));
    for (denied, finds) in [("up__*", false), ("tools_find", false), ("up__t3", true)] {
        let bench = HubFixture::new(vec![Arc::clone(&source) as Arc<dyn Source>], |parts| {
            parts.profiles = vec![Profile::everything_with(&settings(Surface::Profile)).unwrap()];
            parts.policy = denying(denied);
        });
        let client = ClientEpoch::default();
        let shown = bench.hub.instructions(&client, "", &Caller::local(), ListOptions::default()).await;
        assert_eq!(shown.contains("They belong to"), finds, "{denied}: {shown}");
    }
}
