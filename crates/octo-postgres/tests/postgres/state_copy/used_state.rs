//! A state with records of every kind, made through the ports, and what its ports show of it.

use jiff::Timestamp;
use octo_model::{CallId, Caller, Frontend, ItemKind, Json, JsonObject, Method, Principal, Secret};
use octo_ports::apis::StoredApi;
use octo_ports::memory::{
    Fact, FactOrigin, ForgetTarget, Link, MemoryCaller, MemoryQuery, NameMatch, NewEntity, PageRequest,
    Removal,
};
use octo_ports::{
    CallEnded, CallStarted, NewRun, Outcome, Owner, PendingLogin, Pin, PinDelta, PinKind, Retention,
    RunStatus, ServerIdentity, Slot, StoredStep, Stores,
};

/// Expiry of logins.
pub(super) const LATER: i64 = 99_999_999_999;

pub(super) fn callers() -> [Caller; 3] {
    [("main", "ada"), ("main", "grüße"), ("other", "ada")]
        .map(|(tenant, subject)| Principal::new(tenant, subject).into())
}

/// Handles that the stores have chosen.
#[derive(Debug, Clone, Default)]
pub(super) struct Handles {
    pub(super) results: Vec<(Caller, String)>,
    pub(super) runs: Vec<(Caller, String)>,
}

pub(super) async fn record_call(stores: &Stores, caller: &Caller, name: &str) {
    let id = CallId::fresh();
    let opening = CallStarted {
        id,
        principal: caller.principal.clone(),
        frontend: Frontend::Cli,
        profile: "default".to_owned(),
        method: Method::CallTool.into(),
        name: name.to_owned(),
        arguments: stores.audit.fingerprint(b"{}"),
        shown: Some("{\"a\":\"\\u0000 é\"}".to_owned()),
        trace: None,
    };
    stores.audit.open(opening).await.unwrap();
    let result_handle = Some("r_x".to_owned());
    let (target, arguments) = (Some("time/time_now".to_owned()), None);
    let (outcome, micros, bytes) = (Outcome::Ok, 1500, 42);
    stores.audit.close(CallEnded {
        id,
        target,
        rule: None,
        outcome,
        micros,
        bytes,
        result_handle,
        arguments,
    });
    stores.audit.flush().await.unwrap();
}

pub(super) fn keep(most: u64) -> Retention {
    Retention { max_records: Some(most), ..Retention::default() }
}

/// Fills all stores.
pub(super) async fn fill(stores: &Stores) -> Handles {
    let mut handles = Handles::default();
    for caller in &callers() {
        for number in 0..20 {
            record_call(stores, caller, &format!("tool_{number}")).await;
        }
        fill_results(stores, caller, &mut handles).await;
        fill_runs(stores, caller, &mut handles).await;
        fill_credentials(stores, caller).await;
        fill_apis(stores, caller).await;
        fill_memory(stores, caller).await;
    }
    #[expect(clippy::disallowed_methods, reason = "the clock of the records")]
    stores.audit_reader.prune(keep(40), Timestamp::now()).await.unwrap();
    record_call(stores, &callers()[0], "after the pruning").await;
    fill_pins(stores).await;
    stores.listings.put("notion", "m1", "{\"tools\":[\"é\"]}".to_owned()).await.unwrap();
    stores.listings.put("jira", "m2", "{}".to_owned()).await.unwrap();
    let shared = Slot::new(Owner::Shared, "notion", "https://issuer");
    stores.credentials.put(&shared, Secret::new("shared secret"), None).await.unwrap();
    let of_machine = Slot::new(Owner::Shared, "secret:KEY", "octoprox");
    stores.credentials.put(&of_machine, Secret::new("of the machine"), None).await.unwrap();
    handles
}

async fn fill_results(stores: &Stores, caller: &Caller, handles: &mut Handles) {
    for text in ["small é \0".to_owned(), "large ".repeat(600_000)] {
        let block = JsonObject::new().with("type", "text").with("text", text.as_str());
        let whole = JsonObject::new().with("content", Json::array([&block.to_json()])).to_json();
        let handle = stores.results.store(caller, CallId::fresh(), whole).await.unwrap();
        handles.results.push((caller.clone(), handle));
    }
}

fn step(key: &str, output: Option<&str>) -> StoredStep {
    let (output, error) = (output.map(Json::text), Some(Json::text("no")));
    StoredStep { key: key.to_owned(), status: "done".to_owned(), output, error, attempts: Json::array([]) }
}

async fn fill_runs(stores: &Stores, caller: &Caller, handles: &mut Handles) {
    for name in ["first", "zweiter Lauf é", "running"] {
        let (path, text) = ("flow.yaml".to_owned(), format!("version: 1 # {name}"));
        let run = NewRun { path, name: name.to_owned(), text, params: Json::empty_object() };
        let lease = stores.runs.begin(caller, run).await.unwrap();
        handles.runs.push((caller.clone(), lease.id().to_owned()));
        lease.step(step("b", None)).await.unwrap();
        lease.step(step("a[1]", Some("\0 é"))).await.unwrap();
        lease.step(step("b", Some("again"))).await.unwrap();
        if name != "running" {
            lease.status(RunStatus::Done, Some(Json::text("out")), None).await.unwrap();
        }
        lease.release().await;
    }
}

pub(super) fn slot(caller: &Caller, server: &str) -> Slot {
    Slot::new(Owner::from(caller), server, "https://issuer/\0é")
}

async fn fill_credentials(stores: &Stores, caller: &Caller) {
    for server in ["notion", "jira", "gone"] {
        let secret = Secret::new(format!("token of {caller:?} for {server}"));
        stores.credentials.put(&slot(caller, server), secret, None).await.unwrap();
    }
    assert!(stores.credentials.remove(&slot(caller, "gone")).await.unwrap());
    let id = format!("login-{}-{}", caller.principal.tenant, caller.principal.subject);
    let (owner, server, secret) = (Owner::from(caller), "linear".to_owned(), Secret::new("verifier"));
    let login = PendingLogin { id, owner, server, expires: LATER, secret };
    stores.credentials.put_pending(login, 0).await.unwrap();
}

async fn fill_apis(stores: &Stores, caller: &Caller) {
    for (name, secret) in [("pets \0 é", Some(Secret::new("key"))), ("open", None)] {
        let (revision, settings) = ("r1".to_owned(), "{\"origin\":\"https://x\"}".to_owned());
        let api = StoredApi { name: name.to_owned(), revision, settings, secret };
        stores.apis.put(caller, api, format!("openapi: \0 {name}")).await.unwrap();
    }
}

pub(super) fn fact(text: &str, origin: FactOrigin) -> Fact {
    let source = (origin != FactOrigin::Stated).then(|| "https://source".to_owned());
    Fact { text: text.to_owned(), origin, source }
}

pub(super) fn entity(name: &str, kind: Option<&str>, facts: &[&str]) -> NewEntity {
    let facts = facts.iter().enumerate();
    let origin = |at| if at % 2 == 0 { FactOrigin::Stated } else { FactOrigin::Sourced };
    let facts = facts.map(|(at, text)| fact(text, origin(at))).collect();
    NewEntity { name: name.to_owned(), kind: kind.map(str::to_owned), facts }
}

pub(super) fn link(source: &str, relation: &str, target: &str) -> Link {
    Link { source: source.to_owned(), relation: relation.to_owned(), target: target.to_owned() }
}

pub(super) fn asker(caller: &Caller) -> MemoryCaller {
    MemoryCaller::new(caller, CallId::fresh())
}

pub(super) async fn fill_memory(stores: &Stores, caller: &Caller) {
    let memory = &stores.memory;
    let upsert = async |entities| memory.upsert(asker(caller), entities, NameMatch::Alike).await.unwrap();
    let subject = caller.principal.subject.as_str();
    upsert(vec![
        entity("Sencha", Some("tea"), &["a green tea from Japan", "brewed at 70 °C", subject]),
        entity("Straße", Some("Place"), &["eine Straße in Zürich"]),
        entity("東京", None, &["the capital of Japan"]),
        entity("Old project", Some("project"), &["was about tea", "ended"]),
        entity("Secret", None, &["erased later"]),
    ])
    .await;
    upsert(vec![entity("Sencha", Some("drink"), &["sold in Zürich"])]).await;
    let links = vec![
        link("Sencha", "comes from", "東京"),
        link("Old project", "uses", "Sencha"),
        link("New one", "knows", "Straße"),
    ];
    memory.link(asker(caller), links, NameMatch::Exact).await.unwrap();
    let what = ForgetTarget::Fact { entity: "Sencha".to_owned(), text: "brewed at 70 °C".to_owned() };
    memory.forget(asker(caller), what, Removal::Ended).await.unwrap();
    memory.delete(asker(caller), vec!["Old project".to_owned()], Removal::Ended).await.unwrap();
    memory.delete(asker(caller), vec!["Secret".to_owned()], Removal::Erased).await.unwrap();
    upsert(vec![entity("Old project", Some("project"), &["began again"])]).await;
}

fn pin(key: &str, text: &str) -> Pin {
    let kind = PinKind::Item(ItemKind::Tool);
    Pin { kind, key: key.to_owned(), text: Json::text(text), hash: format!("#{text}") }
}

pub(super) fn server(name: &str) -> ServerIdentity {
    ServerIdentity { server: name.to_owned(), identity: format!("id of {name}"), others: Vec::new() }
}

async fn fill_pins(stores: &Stores) {
    for name in ["notion", "jira"] {
        let whose = server(name);
        stores.pins.load(&whose).await.unwrap();
        let new_pins = vec![pin("search", "1"), pin("a \0 é", "2"), pin("create", "3")];
        stores.pins.write(&whose, PinDelta { new_pins, ..PinDelta::default() }).await.unwrap();
        let held = vec![pin("search", "held"), pin("create", "held too")];
        let reported = vec![pin("create", "reported")];
        let news = PinDelta { held, reported, ..PinDelta::default() };
        stores.pins.write(&whose, news).await.unwrap();
        assert_eq!(stores.pins.accept(name, vec![pin("search", "held")]).await.unwrap(), 1);
    }
}

/// What the ports show, as lines. The chain of the hub is shown without its name.
pub(super) async fn view(stores: &Stores, handles: &Handles, node: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for mut record in stores.audit_reader.tail(1_000).await.unwrap() {
        record.chain = record.chain.replace(node, "");
        lines.push(format!("{record:?}"));
    }
    for mut verified in stores.audit_reader.verify(&[]).await.unwrap() {
        verified.chain = verified.chain.replace(node, "");
        lines.push(format!("{verified:?}"));
    }
    for (caller, handle) in &handles.results {
        let loaded = stores.results.load(caller, handle).await.map(|json| json.as_str().to_owned());
        let text = stores.results.open_text(caller, handle).await.map(|text| text.size);
        lines.push(format!("{loaded:?} {text:?}"));
    }
    for (caller, id) in &handles.runs {
        lines.push(format!("{:?}", stores.runs.get(caller, id).await.unwrap()));
    }
    for name in ["notion", "jira"] {
        let mut set = stores.pins.load(&server(name)).await.unwrap();
        set.pins.sort_by(|one, other| one.key.cmp(&other.key));
        lines.push(format!("{:?} {}", set.pins, set.revision));
        lines.push(format!("{:?}", stores.pins.pending(name).await.unwrap()));
        let mark = if name == "notion" { "m1" } else { "m2" };
        lines.push(format!("{:?}", stores.listings.get(name, mark).await.unwrap()));
    }
    for caller in &callers() {
        view_caller(stores, caller, &mut lines).await;
    }
    lines
}

async fn view_caller(stores: &Stores, caller: &Caller, lines: &mut Vec<String>) {
    for run in stores.runs.list(caller, 100).await.unwrap() {
        lines.push(format!("{run:?}"));
    }
    for server in ["notion", "jira", "gone"] {
        let found = stores.credentials.find(&slot(caller, server)).await.unwrap();
        lines.push(format!("{:?} {:?}", found, found.as_ref().map(|found| found.secret.expose())));
    }
    let login = stores.credentials.find_pending(&Owner::from(caller), "linear", 0).await.unwrap();
    lines.push(format!("{login:?}"));
    for api in stores.apis.list(caller).await.unwrap() {
        let found = stores.apis.find(caller, &api.name).await.unwrap().unwrap();
        let text = stores.apis.text(caller, &api.name, &api.revision).await.unwrap();
        lines.push(format!("{api:?} {:?} {text:?}", found.secret.map(|secret| secret.expose().to_owned())));
    }
    view_memory(stores, caller, lines).await;
}

pub(super) async fn view_memory(stores: &Stores, caller: &Caller, lines: &mut Vec<String>) {
    let memory = &stores.memory;
    let page = PageRequest { kind: None, limit: 100, offset: 0 };
    lines.push(format!("{:?}", memory.list(asker(caller), page).await.unwrap()));
    lines.push(format!("{:?}", memory.dump(asker(caller), 0, 100).await.unwrap().entities));
    for text in ["green tea japan", "zürich", "東京", "project", "erased", "began"] {
        for kind in [None, Some("drink".to_owned())] {
            let text = Some(text.to_owned());
            let question =
                MemoryQuery { text, kind, links: true, limit: 10, facts: 10, ..Default::default() };
            lines.push(format!("{:?}", memory.query(asker(caller), question).await.unwrap()));
        }
    }
}
