//! Lists that do not change under a client.

use crate::hub_fixture::{HubFixture, ScriptedSource, tool};
use octo_hub::{
    Change, ClientEpoch, ClientFeatures, ListOptions, ListRequest, Profile, ProfileSettings, Surface,
};
use octo_model::{Caller, ItemKind};
use octo_toolkit::{Source, SourceState};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;

/// Whatever the size of the catalogue.
const EVERYTHING: ListOptions = ListOptions { surface: Some(Surface::Full), structure: None };

async fn list(bench: &HubFixture, client: &ClientEpoch) -> String {
    list_of(bench, client, "").await
}

async fn list_of(bench: &HubFixture, client: &ClientEpoch, profile: &str) -> String {
    let request = ListRequest {
        kind: ItemKind::Tool,
        caller: &Caller::local(),
        features: ClientFeatures::default(),
        options: EVERYTHING,
        cursor: None,
    };
    let page = bench.hub.list_in_epoch(client, profile, request).await.unwrap();
    page.items.as_str().to_owned()
}

async fn names(bench: &HubFixture, client: &ClientEpoch) -> Vec<String> {
    let tools: Vec<Value> = serde_json::from_str(&list(bench, client).await).unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn servers(sources: &[&Arc<ScriptedSource>]) -> HubFixture {
    HubFixture::new(sources.iter().map(|source| Arc::clone(source) as Arc<dyn Source>).collect(), |_| {})
}

/// Waits until the catalogue has seen the last change of a source.
async fn settle(changes: &mut Receiver<Change>) {
    while !matches!(changes.recv().await.unwrap(), Change::Items) {}
}

/// Announced lists of tools, until nothing has happened for a while.
async fn announced(changes: &mut Receiver<Change>) -> usize {
    let mut count = 0;
    while let Ok(change) = tokio::time::timeout(Duration::from_millis(2_500), changes.recv()).await {
        count += usize::from(matches!(change.unwrap(), Change::List(ItemKind::Tool)));
    }
    count
}

#[tokio::test]
async fn what_a_server_does_by_itself_changes_no_byte() {
    let up = ScriptedSource::new("up", vec![tool("a"), tool("b")]);
    let bench = servers(&[&up]);
    let client = ClientEpoch::default();
    let before = list(&bench, &client).await;
    let mut changed = tool("a");
    changed["description"] = "Another one.".into();
    let mut changes = bench.hub.changes();
    for (state, tools) in [
        (SourceState::Down("gone".to_owned()), vec![]),
        (SourceState::Ready, vec![tool("b")]),
        (SourceState::Ready, vec![changed, tool("b")]),
        (SourceState::Starting, vec![]),
        (SourceState::Ready, vec![tool("b"), tool("a")]),
    ] {
        up.relist(state, tools);
        settle(&mut changes).await;
        assert_eq!(list(&bench, &client).await, before);
    }
    assert_eq!(announced(&mut changes).await, 0);
    assert_eq!(list(&bench, &client).await, before);
    up.relist(SourceState::Ready, vec![tool("b")]);
    settle(&mut changes).await;
    assert_eq!(names(&bench, &ClientEpoch::default()).await, ["result_read", "up__b"], "a new client");
    assert_eq!(list(&bench, &client).await, before);
    let counts = bench.hub.list_changes();
    assert!(counts.withheld > 3 && counts.announced == 0, "{counts:?}");
}

#[tokio::test]
async fn additions_are_appended_and_announced_once() {
    let (up, early, late) = (
        ScriptedSource::new("up", vec![tool("b")]),
        ScriptedSource::new("a", vec![]),
        ScriptedSource::new("c", vec![]),
    );
    let bench = servers(&[&up, &early, &late]);
    let client = ClientEpoch::default();
    let before = list(&bench, &client).await;
    let mut changes = bench.hub.changes();
    early.relist(SourceState::Ready, vec![tool("one")]);
    settle(&mut changes).await;
    assert_eq!(list(&bench, &client).await, before, "not before a quiet moment");
    late.relist(SourceState::Ready, vec![tool("one")]);
    up.relist(SourceState::Ready, vec![tool("b"), tool("a")]);
    assert_eq!(announced(&mut changes).await, 1);
    let after = list(&bench, &client).await;
    assert!(after.starts_with(before.strip_suffix(']').unwrap()), "{after}");
    assert_eq!(names(&bench, &client).await, ["result_read", "up__b", "a__one", "c__one", "up__a"]);
    assert_eq!(list(&bench, &ClientEpoch::default()).await, after, "a new client reads the same bytes");
    early.relist(SourceState::Ready, vec![]);
    settle(&mut changes).await;
    early.relist(SourceState::Ready, vec![tool("one")]);
    assert_eq!(announced(&mut changes).await, 0, "what returns changes nothing");
    assert_eq!(list(&bench, &client).await, after);
}

#[tokio::test]
async fn a_deliberate_change_is_seen_at_once() {
    let (up, other) =
        (ScriptedSource::new("up", vec![tool("a")]), ScriptedSource::new("other", vec![tool("b")]));
    let bench = servers(&[&up, &other]);
    let client = ClientEpoch::default();
    assert_eq!(names(&bench, &client).await, ["result_read", "other__b", "up__a"]);
    let mut changes = bench.hub.changes();
    assert!(bench.hub.remove_server("other"));
    assert_eq!(names(&bench, &client).await, ["result_read", "up__a"]);
    assert_eq!(announced(&mut changes).await, 1);
    up.relist(SourceState::Ready, vec![]);
    settle(&mut changes).await;
    assert_eq!(names(&bench, &client).await, ["result_read", "up__a"]);
    bench.hub.put_source(ScriptedSource::new("new", vec![tool("c")]) as Arc<dyn Source>);
    assert_eq!(names(&bench, &client).await, ["result_read", "new__c"]);
}

#[tokio::test]
async fn a_server_with_new_settings_keeps_its_place_until_it_has_listed() {
    let up = ScriptedSource::new("up", vec![tool("a")]);
    let bench = servers(&[&up, &ScriptedSource::new("zoo", vec![tool("z")])]);
    let client = ClientEpoch::default();
    let before = list(&bench, &client).await;
    let mut changes = bench.hub.changes();
    let same = ScriptedSource::new("up", vec![]);
    same.relist(SourceState::Starting, vec![]);
    bench.hub.put_source(Arc::clone(&same) as Arc<dyn Source>);
    assert_eq!(list(&bench, &client).await, before);
    assert!(bench.call("up__a", json!({})).await.is_ok(), "calls reach the new one");
    assert_eq!((up.calls.load(Ordering::Relaxed), same.calls.load(Ordering::Relaxed)), (0, 1));
    same.relist(SourceState::Ready, vec![tool("a")]);
    assert_eq!(announced(&mut changes).await, 0);
    assert_eq!(list(&bench, &client).await, before);
    let other = ScriptedSource::new("up", vec![]);
    other.relist(SourceState::Starting, vec![]);
    bench.hub.put_source(Arc::clone(&other) as Arc<dyn Source>);
    other.relist(SourceState::Ready, vec![tool("b")]);
    assert_eq!(announced(&mut changes).await, 1);
    assert_eq!(names(&bench, &client).await, ["result_read", "up__b", "zoo__z"]);
}

#[tokio::test]
async fn a_server_that_makes_up_names_fills_no_list() {
    let up = ScriptedSource::new("up", vec![tool("a")]);
    let bench = servers(&[&up]);
    let client = ClientEpoch::default();
    let before = names(&bench, &client).await.len();
    let mut changes = bench.hub.changes();
    for round in 0..3 {
        up.relist(SourceState::Ready, (0..400).map(|number| tool(&format!("r{round}_{number}"))).collect());
        announced(&mut changes).await;
    }
    assert_eq!(names(&bench, &client).await.len(), before + 500);
    assert_eq!(names(&bench, &ClientEpoch::default()).await.len(), 401, "a new client sees what there is");
}

#[tokio::test]
async fn a_large_server_that_lists_late_is_listed_whole() {
    let (up, late) = (ScriptedSource::new("up", vec![tool("a")]), ScriptedSource::new("late", vec![]));
    let bench = servers(&[&up, &late]);
    let client = ClientEpoch::default();
    assert_eq!(names(&bench, &client).await.len(), 2);
    let mut changes = bench.hub.changes();
    late.relist(SourceState::Ready, (0..900).map(|number| tool(&format!("t{number}"))).collect());
    assert_eq!(announced(&mut changes).await, 1);
    assert_eq!(names(&bench, &client).await.len(), 902);
}

#[tokio::test]
async fn a_listed_name_means_the_same_tool_whatever_other_servers_add() {
    let (first, second) =
        (ScriptedSource::new("first", vec![tool("search")]), ScriptedSource::new("second", vec![]));
    let sources = [&first, &second].map(|source| Arc::clone(source) as Arc<dyn Source>);
    let short = ProfileSettings { without_prefix: true, ..ProfileSettings::default() };
    let bench = HubFixture::new(sources.to_vec(), |parts| {
        parts.profiles = vec![Profile::new("short", &short).unwrap()];
    });
    let client = ClientEpoch::default();
    assert!(list_of(&bench, &client, "short").await.contains(r#""name":"search""#));
    let name = |name: &str| bench.hub.name_in_epoch(&client, "short", ItemKind::Tool, name);
    assert_eq!(name("search"), None, "it means the same without help");
    let mut changes = bench.hub.changes();
    second.relist(SourceState::Ready, vec![tool("search")]);
    settle(&mut changes).await;
    assert_eq!(name("search").as_deref(), Some("first:search"));
    first.relist(SourceState::Ready, vec![]);
    settle(&mut changes).await;
    assert_eq!(name("search").as_deref(), Some("first:search"), "never the other server's");
    assert_eq!(name("unknown"), None);
}
