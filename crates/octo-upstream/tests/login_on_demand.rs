//! Calls to a server that needs a login: who is prompted, with what, and how the call continues.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests are the servers that are asked, and fail where they must"
)]

#[path = "login/auth_server.rs"]
mod auth_server;
mod common;

use auth_server::{AuthServer, ada, log_in, logins, upstream, wait_until};
use octo_model::{Caller, Json, JsonObject, Kind, Operation, ToolError};
use octo_oauth::{Auth, Flow, KeyPlacement, LoginSharing, Logins, OAuth};
use octo_ports::Stores;
use octo_toolkit::{AskError, BoxFuture, CallContext, Peer, Source};
use octo_upstream::{LoginOnDemand, Upstream};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// What a person does with the prompt.
#[derive(Clone, Copy)]
enum Reaction {
    Agrees,
    /// Accepts first, and agrees in the browser some time later.
    AgreesLater,
    Declines,
    /// Accepts, then declines in the browser.
    Refuses,
    /// Accepts; a code is entered elsewhere.
    Waits,
}

struct ScriptedPerson {
    capabilities: JsonObject,
    world: Arc<AuthServer>,
    logins: Logins,
    does: Reaction,
    asked: Mutex<Vec<Value>>,
    told: Mutex<Vec<(String, Value)>>,
}

impl ScriptedPerson {
    fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }
}

impl Peer for ScriptedPerson {
    fn capabilities(&self) -> &JsonObject {
        &self.capabilities
    }

    fn notify(&self, method: &str, params: JsonObject) {
        self.told.lock().unwrap().push((method.to_owned(), params.to_json().to().unwrap()));
    }

    fn ask<'a>(&'a self, method: &'a str, params: JsonObject) -> BoxFuture<'a, Result<JsonObject, AskError>> {
        assert_eq!(method, "elicitation/create");
        let question: Value = params.to_json().to().unwrap();
        let url = question["url"].as_str().unwrap().to_owned();
        self.asked.lock().unwrap().push(question);
        let (world, logins) = (Arc::clone(&self.world), self.logins.clone());
        let agrees = async move {
            // The second one finds it done.
            let _ = logins.callback(world.approve(&url).query().unwrap(), None).await;
        };
        Box::pin(async move {
            let action = match self.does {
                Reaction::Agrees => {
                    agrees.await;
                    "accept"
                }
                Reaction::AgreesLater => {
                    tokio::spawn(async move {
                        tokio::time::sleep(Duration::from_millis(200)).await;
                        agrees.await;
                    });
                    "accept"
                }
                Reaction::Refuses => {
                    let asked = self.asked();
                    let url: url::Url = asked[0]["url"].as_str().unwrap().parse().unwrap();
                    let state = url.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
                    let no = format!("error=access_denied&state={state}&iss={}", self.world.base);
                    assert!(self.logins.callback(&no, None).await.is_err());
                    "accept"
                }
                Reaction::Waits => "accept",
                Reaction::Declines => "decline",
            };
            Ok(JsonObject::new().with("action", action))
        })
    }
}

struct LoginFixture {
    world: Arc<AuthServer>,
    logins: Logins,
    upstream: Arc<Upstream>,
    source: Arc<dyn Source>,
}

impl LoginFixture {
    async fn new() -> Self {
        let world = Arc::new(AuthServer::start().await);
        Self::of(Arc::clone(&world), Auth::OAuth(OAuth::default()), LoginSharing::PerCaller)
    }

    fn of(world: Arc<AuthServer>, auth: Auth, whose: LoginSharing) -> Self {
        let mut spec = world.spec("s");
        spec.auth = auth;
        let logins = logins(&Stores::in_memory(), spec);
        let upstream = upstream(&world, &logins, "s");
        let source = LoginOnDemand::wrap(Arc::clone(&upstream) as Arc<dyn Source>, logins.clone(), whose);
        Self { world, logins, upstream, source }
    }

    fn person(&self, does: Reaction, elicitation: Value) -> Arc<ScriptedPerson> {
        let capabilities = Json::from(json!({"elicitation": elicitation})).members().unwrap();
        Arc::new(ScriptedPerson {
            capabilities,
            world: Arc::clone(&self.world),
            logins: self.logins.clone(),
            does,
            asked: Mutex::default(),
            told: Mutex::default(),
        })
    }

    async fn call(&self, caller: Caller, person: &Arc<ScriptedPerson>) -> Result<Value, ToolError> {
        let deadline = Instant::now() + Duration::from_secs(20);
        let cx = CallContext::new(Arc::new(caller), deadline, CancellationToken::new());
        let cx = cx.with_peer(Arc::clone(person) as Arc<dyn Peer>);
        let result = self.source.run(Operation::tool("a", json!({}).into()), &cx).await?;
        Ok(result.to_json().to().unwrap())
    }

    fn calls(&self) -> usize {
        self.world.requests_to("/mcp").iter().filter(|seen| seen.json["method"] == "tools/call").count()
    }
}

fn url() -> Value {
    json!({"form": {}, "url": {}})
}

#[tokio::test]
async fn a_client_that_can_open_addresses_is_asked_and_the_call_goes_on() {
    for does in [Reaction::Agrees, Reaction::AgreesLater] {
        let scene = LoginFixture::new().await;
        let person = scene.person(does, url());
        assert_eq!(scene.call(ada(), &person).await.unwrap()["content"], json!([]));
        let asked = person.asked();
        let [question] = asked.as_slice() else { panic!("{asked:?}") };
        assert_eq!(question["mode"], "url");
        assert!(question["url"].as_str().unwrap().starts_with(&format!("{}/authorize?", scene.world.base)));
        assert!(question["message"].as_str().unwrap().contains("s needs a login"), "{question}");
        let complete = json!({"elicitationId": question["elicitationId"]});
        assert_eq!(
            *person.told.lock().unwrap(),
            [("notifications/elicitation/complete".to_owned(), complete)]
        );
        scene.call(ada(), &person).await.unwrap();
        assert_eq!(person.asked().len(), 1, "once is enough");
        assert_eq!(scene.calls(), 2);
        scene.upstream.stop().await;
    }
}

#[tokio::test]
async fn a_login_that_the_server_has_forgotten_is_asked_for_again() {
    for _ in 0..10 {
        let scene = LoginFixture::new().await;
        log_in(&scene.world, &scene.logins, "s").await;
        let person = scene.person(Reaction::Agrees, url());
        scene.call(ada(), &person).await.unwrap();
        assert!(person.asked().is_empty());
        scene.world.rules().access.clear();
        scene.world.rules().refuse = Some((400, "invalid_grant"));
        scene.call(ada(), &person).await.unwrap();
        assert_eq!(person.asked().len(), 1);
        scene.upstream.stop().await;
    }
}

#[tokio::test]
async fn the_moment_between_the_browsers_answer_and_the_login_is_waited_out() {
    let scene = LoginFixture::new().await;
    log_in(&scene.world, &scene.logins, "s").await;
    // The hub still uses the old login while the new one is being fetched.
    scene.world.rules().access.clear();
    scene.world.rules().slow = Duration::from_millis(700);
    let person = scene.person(Reaction::AgreesLater, url());
    scene.call(ada(), &person).await.unwrap();
    assert_eq!(person.asked().len(), 1);
}

#[tokio::test]
async fn a_client_that_cannot_sees_the_error_with_both_ways_out() {
    let scene = LoginFixture::new().await;
    for elicitation in [json!({}), json!({"form": {}})] {
        let person = scene.person(Reaction::Agrees, elicitation);
        let error = scene.call(ada(), &person).await.unwrap_err();
        assert_eq!(error.kind, Kind::Unauthorized);
        let login = octo_model::Remedy::Login { server: "s".to_owned() };
        assert_eq!(error.remedy.as_deref(), Some(&login), "its text names both ways");
        assert_eq!(person.asked(), Vec::<Value>::new());
    }
    assert!(scene.world.requests_to("/register").is_empty(), "no login was begun");
}

#[tokio::test]
async fn a_login_that_is_declined_or_refused_ends_the_call() {
    for (does, said) in [(Reaction::Declines, "declined"), (Reaction::Refuses, "failed")] {
        let scene = LoginFixture::new().await;
        let person = scene.person(does, url());
        let error = scene.call(ada(), &person).await.unwrap_err();
        assert_eq!(error.kind, Kind::Unauthorized, "{error}");
        assert!(error.text().contains(said) && error.text().contains("server_login"), "{error}");
        assert_eq!((person.asked().len(), scene.calls()), (1, 0));
    }
}

#[tokio::test]
async fn calls_that_come_together_wait_for_one_login() {
    let scene = LoginFixture::new().await;
    let person = scene.person(Reaction::AgreesLater, url());
    let calls = (0..5).map(|_| scene.call(ada(), &person));
    for called in futures_util::future::join_all(calls).await {
        called.unwrap();
    }
    let mut asked: Vec<String> = person.asked().iter().map(ToString::to_string).collect();
    asked.dedup();
    assert_eq!(asked.len(), 1, "{asked:?}");
}

#[tokio::test]
async fn only_an_administrator_is_asked_to_log_in_for_everybody() {
    let world = Arc::new(AuthServer::start().await);
    let scene = LoginFixture::of(world, Auth::OAuth(OAuth::default()), LoginSharing::Shared);
    let person = scene.person(Reaction::Declines, url());
    scene.call(ada(), &person).await.unwrap_err();
    assert!(person.asked().is_empty());
    let admin = Caller { scopes: vec!["admin".to_owned()], ..ada() };
    scene.call(admin, &person).await.unwrap_err();
    assert_eq!(person.asked().len(), 1);
}

#[tokio::test]
async fn a_call_that_needs_more_rights_asks_for_those() {
    let scene = LoginFixture::new().await;
    log_in(&scene.world, &scene.logins, "s").await;
    scene.world.rules().scope = Some("admin".to_owned());
    let person = scene.person(Reaction::Agrees, url());
    scene.call(ada(), &person).await.unwrap();
    let asked = person.asked();
    assert!(asked[0]["url"].as_str().unwrap().contains("admin"), "{asked:?}");
}

#[tokio::test]
async fn a_code_is_shown_and_a_key_is_not_asked_for() {
    let world = Arc::new(AuthServer::start().await);
    let device = Auth::OAuth(OAuth { flow: Flow::Device, ..OAuth::default() });
    let scene = LoginFixture::of(Arc::clone(&world), device, LoginSharing::PerCaller);
    let person = scene.person(Reaction::Waits, url());
    scene.call(ada(), &person).await.unwrap();
    let asked = person.asked();
    assert!(asked[0]["message"].as_str().unwrap().contains("ABCD-1234"), "{asked:?}");
    assert_eq!(asked[0]["url"], format!("{}/go?c=ABCD-1234", world.base));

    let world = Arc::new(AuthServer::start().await);
    world.rules().key = Some(("x-key".to_owned(), "k".to_owned()));
    let key = Auth::Key(KeyPlacement::Header { name: "x-key".to_owned(), prefix: String::new() });
    let scene = LoginFixture::of(world, key, LoginSharing::PerCaller);
    let person = scene.person(Reaction::Agrees, url());
    assert_eq!(scene.call(ada(), &person).await.unwrap_err().kind, Kind::Unauthorized);
    assert!(person.asked().is_empty());
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_asks_no_longer() {
    let scene = LoginFixture::new().await;
    scene.world.rules().device = vec!["authorization_pending"];
    let person = scene.person(Reaction::Waits, url());
    let cancel = CancellationToken::new();
    let cx = CallContext::new(Arc::new(ada()), Instant::now() + Duration::from_secs(20), cancel.clone());
    let cx = cx.with_peer(Arc::clone(&person) as Arc<dyn Peer>);
    let source = Arc::clone(&scene.source);
    let call = tokio::spawn(async move {
        source.run(Operation::tool("a", json!({}).into()), &cx).await.unwrap_err().kind
    });
    wait_until("the person is asked", || !person.asked().is_empty()).await;
    cancel.cancel();
    assert_eq!(call.await.unwrap(), Kind::Cancelled);
}
