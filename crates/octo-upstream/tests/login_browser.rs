//! Browser logins: who may log in, what is sent where, and what is refused.

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

use auth_server::{AuthServer, ada, authorization_url, log_in, logins, net, upstream};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use common::{RecordingPeer, call, wait_listing, wait_ready};
use octo_model::Secret;
use octo_model::{Caller, Kind};
use octo_oauth::{Auth, LoginPrompt, LoginSpec, LoginState, LogoutOutcome};
use octo_ports::Stores;
use octo_toolkit::SourceState as Listed;
use serde_json::json;

#[tokio::test]
async fn a_person_logs_in_with_a_browser_and_the_server_can_be_used() {
    let world = AuthServer::start().await;
    let logins = logins(&Stores::in_memory(), world.spec("s"));
    let upstream = upstream(&world, &logins, "s");
    wait_listing(&upstream, |now| matches!(&now.state, Listed::Down(why) if why.contains("login"))).await;
    let peer = RecordingPeer::new(1, None).peer();
    let error = call(&upstream, &peer, "a", json!({})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Unauthorized);
    assert_eq!(
        error.remedy.as_deref(),
        Some(&octo_model::Remedy::Login { server: "s".to_owned() }),
        "{error}"
    );
    assert_eq!(logins.status(&ada(), "s").await.unwrap().state, LoginState::None);

    let url = authorization_url(logins.begin(&ada(), "s").await.unwrap());
    assert_eq!(logins.status(&ada(), "s").await.unwrap().state, LoginState::Waiting);
    let done = logins.callback(world.approve(&url).query().unwrap(), None).await.unwrap();
    assert_eq!((done.server.as_str(), done.scopes), ("s", vec!["read".to_owned(), "write".to_owned()]));
    wait_ready(&upstream).await;
    call(&upstream, &peer, "a", json!({})).await.unwrap();

    let status = logins.status(&ada(), "s").await.unwrap();
    assert_eq!(
        (status.state, status.issuer, status.refreshes),
        (LoginState::Connected, Some(world.base.clone()), true)
    );
    assert_eq!(logins.status(&Caller::named("bob"), "s").await.unwrap().state, LoginState::None);
    let registered = &world.requests_to("/register")[0].json;
    assert_eq!(
        (&registered["application_type"], &registered["redirect_uris"][0]),
        (&json!("native"), &json!(auth_server::REDIRECT))
    );
    assert!(url.contains("resource=http") && url.contains("state=") && url.contains("code_challenge="));
    assert_eq!(world.token_requests("authorization_code")[0].form["resource"], world.mcp());
    upstream.stop().await;
}

#[tokio::test]
async fn an_answer_counts_once_and_only_from_who_began() {
    let world = AuthServer::start().await;
    let logins = logins(&Stores::in_memory(), world.spec("s"));
    let first = authorization_url(logins.begin(&ada(), "s").await.unwrap());
    let second = authorization_url(logins.begin(&ada(), "s").await.unwrap());
    let replaced = logins.callback(world.approve(&first).query().unwrap(), None).await.unwrap_err();
    assert_eq!(replaced.kind, Kind::NotFound, "a newer login has taken its place");

    let back = world.approve(&second);
    let eve = Caller::named("eve");
    let stolen = logins.complete(&eve, "s", back.as_str()).await.unwrap_err();
    assert_eq!(stolen.kind, Kind::NotFound);
    let late = logins.callback(back.query().unwrap(), None).await.unwrap_err();
    assert_eq!(late.kind, Kind::NotFound, "even a wrong answer uses it up");

    let url = authorization_url(logins.begin(&ada(), "s").await.unwrap());
    let back = world.approve(&url);
    logins.callback(back.query().unwrap(), Some(&ada())).await.unwrap();
    let again = logins.callback(back.query().unwrap(), None).await.unwrap_err();
    assert_eq!(again.text(), late.text(), "who guesses learns nothing");
    for query in ["", "code=x", "code=x&state=", "code=x&state=guess"] {
        assert_eq!(logins.callback(query, None).await.unwrap_err().kind, Kind::NotFound, "{query}");
    }
    assert_eq!(world.token_requests("authorization_code").len(), 1);
    assert_eq!(logins.status(&eve, "s").await.unwrap().state, LoginState::None);
}

#[tokio::test]
async fn an_answer_of_another_issuer_is_never_redeemed() {
    let world = AuthServer::start().await;
    let logins = logins(&Stores::in_memory(), world.spec("s"));
    for (promised, iss) in [
        (true, Some("https://evil.example".to_owned())),
        (true, Some(format!("{}/", world.base))),
        (true, None),
        (false, Some("https://evil.example".to_owned())),
    ] {
        world.rules().metadata = json!({"authorization_response_iss_parameter_supported": promised});
        let mut back = world.approve(&authorization_url(logins.begin(&ada(), "s").await.unwrap()));
        let kept: Vec<(String, String)> =
            back.query_pairs().into_owned().filter(|(name, _)| name != "iss").collect();
        back.query_pairs_mut().clear().extend_pairs(kept);
        if let Some(iss) = &iss {
            back.query_pairs_mut().append_pair("iss", iss);
        }
        let error = logins.callback(back.query().unwrap(), None).await.unwrap_err();
        assert_eq!(error.kind, Kind::Denied, "{promised} {iss:?}: {error}");
        assert!(!error.text().contains("evil"), "{error}");
    }
    assert_eq!(world.token_requests("authorization_code").len(), 0);
    let status = logins.status(&ada(), "s").await.unwrap();
    assert!(status.state == LoginState::None && status.reason.unwrap().contains("another"));
}

#[tokio::test]
async fn metadata_that_are_not_the_servers_begin_no_login() {
    for (metadata, protected, part) in [
        (json!({"issuer": "https://evil.example"}), json!({}), "claims to be that of"),
        (json!({}), json!({"resource": "https://evil.example/mcp"}), "another server"),
        (json!({"code_challenge_methods_supported": null}), json!({}), "S256"),
        (json!({"code_challenge_methods_supported": ["plain"]}), json!({}), "S256"),
        (json!({"token_endpoint": "http://evil.example/token"}), json!({}), "not encrypted"),
        (json!({"authorization_endpoint": "javascript:alert(1)"}), json!({}), "not a valid login URL"),
        (json!({"registration_endpoint": "file:///etc/passwd"}), json!({}), "not a valid login URL"),
        (json!({}), json!({"authorization_servers": []}), "names no authorization server"),
        (json!({}), json!({"authorization_servers": ["http://169.254.169.254"]}), "not encrypted"),
        (json!({}), json!({"authorization_servers": ["https://169.254.169.254"]}), "public internet"),
        (json!({}), json!({"authorization_servers": ["https://10.0.0.1/x"]}), "public internet"),
    ] {
        let world = AuthServer::start().await;
        let logins = logins(&Stores::in_memory(), world.spec("s"));
        world.rules().metadata = metadata.clone();
        world.rules().protected = protected.clone();
        let error = logins.begin(&ada(), "s").await.unwrap_err();
        assert!(error.message.contains(part), "{metadata} {protected}: {error:?}");
        assert!(world.requests_to("/register").is_empty(), "{metadata} {protected}");
    }
}

#[tokio::test]
async fn a_private_authorization_server_must_be_named_by_the_operator() {
    let (world, other) = (AuthServer::start().await, AuthServer::start().await);
    world.rules().protected = json!({"authorization_servers": [other.base]});
    let mut spec = world.spec("s");
    let error = logins(&Stores::in_memory(), spec.clone()).begin(&ada(), "s").await.unwrap_err();
    assert_eq!(error.kind, Kind::Denied, "{error}");
    assert!(other.seen.lock().unwrap().is_empty());

    spec.net = net(&["127.0.0.1"]);
    logins(&Stores::in_memory(), spec.clone()).begin(&ada(), "s").await.unwrap();

    spec.net = net(&[]);
    if let Auth::OAuth(oauth) = &mut spec.auth {
        oauth.issuer = Some(other.base.clone());
    }
    let named = logins(&Stores::in_memory(), spec);
    named.begin(&ada(), "s").await.unwrap();
    // The server must not switch to another authorization server without the operator.
    world.rules().protected = json!({});
    assert_eq!(named.begin(&ada(), "s").await.unwrap_err().kind, Kind::Denied);
}

/// A client registered by the operator, with or without its authorization server.
fn registered(world: &AuthServer, issuer: Option<&str>) -> LoginSpec {
    let mut spec = world.spec("s");
    spec.net = net(&["127.0.0.1"]);
    if let Auth::OAuth(oauth) = &mut spec.auth {
        oauth.client_id = Some("corp".to_owned());
        oauth.client_secret = Some(Secret::new(CLIENT_SECRET));
        oauth.issuer = issuer.map(ToOwned::to_owned);
    }
    spec
}

const CLIENT_SECRET: &str = "c4nary-of-the-operator";

/// Whether a server received the client secret, in a form or a header.
fn saw_client_secret(world: &AuthServer) -> bool {
    let basic = STANDARD.encode(format!("corp:{CLIENT_SECRET}"));
    let seen: Vec<String> = world.seen.lock().unwrap().iter().map(|seen| format!("{seen:?}")).collect();
    seen.iter().any(|seen| seen.contains(CLIENT_SECRET) || seen.contains(&basic))
}

#[tokio::test]
async fn a_client_secret_goes_only_to_the_issuer_of_the_settings() {
    let secret_methods = json!({"token_endpoint_auth_methods_supported": ["client_secret_basic"]});
    let only_device = json!({"authorization_endpoint": null});
    for metadata in [secret_methods, only_device] {
        // The server names itself, then another authorization server; with metadata of its own, then without.
        for (elsewhere, protected) in [(false, true), (true, true), (false, false)] {
            let (world, attacker) = (AuthServer::start().await, AuthServer::start().await);
            world.rules().metadata = metadata.clone();
            attacker.rules().metadata = metadata.clone();
            if elsewhere {
                world.rules().protected = json!({"authorization_servers": [attacker.base]});
            }
            if !protected {
                world
                    .rules()
                    .moved
                    .insert("/.well-known/oauth-protected-resource/mcp".to_owned(), "/nothing".to_owned());
            }
            let unnamed = logins(&Stores::in_memory(), registered(&world, None));
            let begun = unnamed.begin(&ada(), "s").await;
            assert!(!saw_client_secret(&world) && !saw_client_secret(&attacker), "{metadata} {elsewhere}");
            let error = begun.unwrap_err();
            if protected {
                assert_eq!(error.kind, Kind::Denied, "{error}");
                assert!(error.text().contains("issuer: http://127.0.0.1"), "{error}");
            }
        }
    }
    let world = AuthServer::start().await;
    world.rules().metadata = json!({"token_endpoint_auth_methods_supported": ["client_secret_basic"]});
    let named = logins(&Stores::in_memory(), registered(&world, Some(&world.base)));
    log_in(&world, &named, "s").await;
    assert!(saw_client_secret(&world));
    // The server switches to another authorization server, which receives nothing of the first.
    let attacker = AuthServer::start().await;
    world.rules().protected = json!({"authorization_servers": [attacker.base]});
    assert_eq!(named.begin(&ada(), "s").await.unwrap_err().kind, Kind::Denied);
    assert!(attacker.seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn endpoints_on_another_site_begin_no_login() {
    for endpoint in [
        "authorization_endpoint",
        "token_endpoint",
        "registration_endpoint",
        "revocation_endpoint",
        "device_authorization_endpoint",
    ] {
        let (world, genuine) = (AuthServer::start().await, AuthServer::start().await);
        world.rules().metadata = json!({endpoint: format!("{}/x", genuine.base)});
        let mut spec = world.spec("s");
        spec.net = net(&["127.0.0.1"]);
        let error = logins(&Stores::in_memory(), spec.clone()).begin(&ada(), "s").await.unwrap_err();
        assert_eq!(error.kind, Kind::Denied, "{endpoint}: {error}");
        assert!(error.text().contains("another site") && error.text().contains("`issuer"), "{error}");
        assert!(
            world.requests_to("/register").is_empty() && genuine.seen.lock().unwrap().is_empty(),
            "{endpoint}"
        );
        // The operator has declared that they belong together.
        if let Auth::OAuth(oauth) = &mut spec.auth {
            oauth.issuer = Some(world.base.clone());
        }
        if endpoint != "registration_endpoint" {
            logins(&Stores::in_memory(), spec).begin(&ada(), "s").await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_login_says_which_host_receives_its_code() {
    let world = AuthServer::start().await;
    let logins = logins(&Stores::in_memory(), world.spec("s"));
    let begun = logins.begin(&ada(), "s").await.unwrap();
    assert!(matches!(&begun, LoginPrompt::Open { code_host, .. } if code_host == "127.0.0.1"), "{begun:?}");
}

#[tokio::test]
async fn a_server_that_turns_to_another_issuer_gets_nothing_of_the_first() {
    let (world, second) = (AuthServer::start().await, AuthServer::start().await);
    let store = Stores::in_memory();
    let mut spec = world.spec("s");
    spec.net = net(&["127.0.0.1"]);
    let logins = logins(&store, spec);
    log_in(&world, &logins, "s").await;
    let first = world.requests_to("/register").len();
    world.rules().protected = json!({"authorization_servers": [second.base]});
    let url = authorization_url(logins.begin(&ada(), "s").await.unwrap());
    assert!(url.starts_with(&second.base));
    assert_eq!(second.requests_to("/register").len(), 1, "registered anew");
    logins.callback(second.approve(&url).query().unwrap(), None).await.unwrap();
    assert_eq!(world.requests_to("/register").len(), first);
    let shown: Vec<String> = second.seen.lock().unwrap().iter().map(|seen| format!("{seen:?}")).collect();
    let own = world.rules().access.keys().next().unwrap().clone();
    assert!(!shown.iter().any(|seen| seen.contains(&own)));
    let kept = store.credentials.all(&(&ada()).into(), "s").await.unwrap();
    assert_eq!(kept.iter().map(|kept| kept.slot.issuer.as_str()).collect::<Vec<_>>(), [second.base.as_str()]);
}

#[tokio::test]
async fn a_code_can_be_pasted_where_the_browser_cannot_come_back() {
    let world = AuthServer::start().await;
    let logins = logins(&Stores::in_memory(), world.spec("s"));
    let back = world.approve(&authorization_url(logins.begin(&ada(), "s").await.unwrap()));
    let code = back.query_pairs().find(|(name, _)| name == "code").unwrap().1.into_owned();
    let error = logins.complete(&ada(), "s", &code).await.unwrap_err();
    assert!(error.text().contains("full URL"), "{error}");
    let elsewhere = back.as_str().replace("localhost:3100", "evil.example");
    assert_eq!(logins.complete(&ada(), "s", &elsewhere).await.unwrap_err().kind, Kind::Invalid);
    logins.complete(&ada(), "s", back.as_str()).await.unwrap();

    world.rules().metadata = json!({"authorization_response_iss_parameter_supported": false});
    let back = world.approve(&authorization_url(logins.begin(&ada(), "s").await.unwrap()));
    let code = back.query_pairs().find(|(name, _)| name == "code").unwrap().1.into_owned();
    assert_eq!(logins.complete(&Caller::named("eve"), "s", &code).await.unwrap_err().kind, Kind::NotFound);
    logins.complete(&ada(), "s", &code).await.unwrap();
    assert_eq!(world.requests_to("/register").len(), 1, "the registration is used again");
}

#[tokio::test]
async fn a_metadata_document_stands_for_a_registration() {
    let world = AuthServer::start().await;
    world.rules().metadata = json!({"client_id_metadata_document_supported": true});
    let mut identity = octo_oauth::ClientIdentity::new(auth_server::REDIRECT);
    identity.metadata_url = Some("https://hub.example/client.json".to_owned());
    let logins = octo_oauth::Logins::new(&Stores::in_memory(), identity).unwrap();
    logins.register(world.spec("s"));
    log_in(&world, &logins, "s").await;
    assert_eq!(
        world.token_requests("authorization_code")[0].form["client_id"],
        "https://hub.example/client.json"
    );
    assert!(world.requests_to("/register").is_empty());
    let document: serde_json::Value = logins.metadata_document().to().unwrap();
    assert_eq!(document["client_id"], "https://hub.example/client.json");
    assert_eq!(document["redirect_uris"], json!([auth_server::REDIRECT]));
}

#[tokio::test]
async fn a_call_that_needs_more_says_so_and_the_next_login_asks_for_it() {
    let world = AuthServer::start().await;
    let logins = logins(&Stores::in_memory(), world.spec("s"));
    log_in(&world, &logins, "s").await;
    let upstream = upstream(&world, &logins, "s");
    wait_ready(&upstream).await;
    world.rules().scope = Some("admin".to_owned());
    let peer = RecordingPeer::new(1, None).peer();
    let error = call(&upstream, &peer, "a", json!({})).await.unwrap_err();
    assert!(error.kind == Kind::Unauthorized && error.message.contains("more rights"), "{error}");
    let status = logins.status(&ada(), "s").await.unwrap();
    assert_eq!((status.state, status.missing), (LoginState::Connected, vec!["admin".to_owned()]));
    let url = authorization_url(logins.begin(&ada(), "s").await.unwrap());
    assert!(url.contains("scope=read+write+admin"), "{url}");
    logins.callback(world.approve(&url).query().unwrap(), None).await.unwrap();
    call(&upstream, &peer, "a", json!({})).await.unwrap();
    upstream.stop().await;
}

#[tokio::test]
async fn a_redirect_takes_no_secret_to_another_server() {
    let (world, other) = (AuthServer::start().await, AuthServer::start().await);
    let store = Stores::in_memory();
    let mut spec = world.spec("s");
    spec.net = net(&["127.0.0.1"]);
    let logins = logins(&store, spec);
    log_in(&world, &logins, "s").await;
    world.rules().moved =
        [("/mcp".to_owned(), other.mcp()), ("/token".to_owned(), format!("{}/token", other.base))].into();
    let upstream = upstream(&world, &logins, "s");
    wait_listing(&upstream, |now| matches!(now.state, Listed::Down(_))).await;
    upstream.stop().await;
    let back = world.approve(&authorization_url(logins.begin(&ada(), "s").await.unwrap()));
    assert!(logins.callback(back.query().unwrap(), None).await.is_err());
    for path in ["/mcp", "/token"] {
        assert!(
            other.requests_to(path).iter().all(|seen| seen.authorization.is_none() && seen.form.is_empty()),
            "{path}"
        );
    }
    assert!(other.requests_to("/token").is_empty());
}

#[tokio::test]
async fn a_token_is_not_sent_to_another_address_under_the_same_name() {
    let (world, other) = (AuthServer::start().await, AuthServer::start().await);
    let store = Stores::in_memory();
    log_in(&world, &logins(&store, world.spec("s")), "s").await;
    // The settings now define `s` as another server.
    let logins = logins(&store, other.spec("s"));
    let upstream = upstream(&other, &logins, "s");
    wait_listing(&upstream, |now| matches!(now.state, Listed::Down(_))).await;
    assert!(other.seen.lock().unwrap().iter().all(|seen| seen.authorization.is_none()));
    upstream.stop().await;
}

#[tokio::test]
async fn logging_out_forgets_here_and_revokes_there() {
    let world = AuthServer::start().await;
    let store = Stores::in_memory();
    let logins = logins(&store, world.spec("s"));
    assert_eq!(logins.logout(&ada(), "s").await.unwrap(), LogoutOutcome::NotLoggedIn);
    log_in(&world, &logins, "s").await;
    logins.begin(&ada(), "s").await.unwrap();
    assert_eq!(logins.logout(&ada(), "s").await.unwrap(), LogoutOutcome::Revoked);
    assert_eq!(world.rules().revoked.len(), 2);
    assert!(world.rules().access.is_empty());
    assert_eq!(logins.status(&ada(), "s").await.unwrap().state, LoginState::None);
    world.rules().metadata = json!({"revocation_endpoint": null});
    log_in(&world, &logins, "s").await;
    assert_eq!(logins.logout(&ada(), "s").await.unwrap(), LogoutOutcome::Deleted);
    assert!(store.credentials.all(&(&ada()).into(), "s").await.unwrap().is_empty());
}
