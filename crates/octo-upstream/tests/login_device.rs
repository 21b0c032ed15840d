//! Device code logins, and API keys.

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

use auth_server::{AuthServer, ada, logins, upstream};
use common::{RecordingPeer, call, wait_listing, wait_ready};
use octo_model::Kind;
use octo_oauth::{
    Auth, Flow, KeyPlacement, LoginPrompt, LoginSharing, LoginSpec, LoginState, LoginStatus, Logins,
};
use octo_ports::{Owner, Stores};
use octo_toolkit::SourceState as Listed;
use octo_upstream::{Upstream, UpstreamSpec};
use serde_json::json;
use std::time::Duration;

fn device(world: &AuthServer) -> LoginSpec {
    let mut spec = world.spec("s");
    if let Auth::OAuth(oauth) = &mut spec.auth {
        oauth.flow = Flow::Device;
    }
    spec
}

/// Waits until the login is no longer pending.
async fn wait_settled(logins: &Logins) -> LoginStatus {
    for _ in 0..1500 {
        let status = logins.status(&ada(), "s").await.unwrap();
        if status.pending_secs.is_none() {
            return status;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it still waits");
}

#[tokio::test]
async fn a_code_is_entered_elsewhere_and_the_hub_asks_as_slowly_as_it_is_told() {
    let world = AuthServer::start().await;
    world.rules().device = vec!["authorization_pending", "slow_down", "granted"];
    let logins = logins(&Stores::in_memory(), device(&world));
    let begun = logins.begin(&ada(), "s").await.unwrap();
    let LoginPrompt::Enter { url, user_code, url_with_code, expires_in } = begun else { panic!("{begun:?}") };
    assert_eq!((url, user_code.as_str(), expires_in), (format!("{}/go", world.base), "ABCD-1234", 60));
    assert!(url_with_code.unwrap().ends_with("/go?c=ABCD-1234"));
    assert_eq!(logins.status(&ada(), "s").await.unwrap().state, LoginState::Waiting);
    assert_eq!(wait_settled(&logins).await.state, LoginState::Connected);
    let asked = world.token_requests("device_code");
    assert_eq!(asked.len(), 3);
    assert!(asked[2].at - asked[1].at >= Duration::from_secs(6), "slower by five seconds");
    assert!(asked.iter().all(|seen| seen.form["resource"] == world.mcp()));
    let upstream = upstream(&world, &logins, "s");
    wait_ready(&upstream).await;
    upstream.stop().await;
}

/// Otherwise a server could have its own code entered on the page of another provider.
#[tokio::test]
async fn a_code_is_entered_on_the_issuers_own_site_only() {
    let world = AuthServer::start().await;
    let logins = logins(&Stores::in_memory(), device(&world));
    world.rules().device_answer = json!({"verification_uri": "https://genuine.example/device"});
    let error = logins.begin(&ada(), "s").await.unwrap_err();
    assert!(error.kind == Kind::Denied && error.text().contains("another site"), "{error}");
    assert_eq!(logins.status(&ada(), "s").await.unwrap().state, LoginState::None);
    world.rules().device_answer = json!({"verification_uri_complete": "https://genuine.example/device?c=1"});
    let begun = logins.begin(&ada(), "s").await.unwrap();
    assert!(matches!(&begun, LoginPrompt::Enter { url_with_code: None, .. }), "{begun:?}");
}

#[tokio::test]
async fn a_code_that_is_declined_or_too_old_says_so() {
    for (answer, part) in [("access_denied", "declined"), ("expired_token", "expired")] {
        let world = AuthServer::start().await;
        world.rules().device = vec![answer];
        let logins = logins(&Stores::in_memory(), device(&world));
        logins.begin(&ada(), "s").await.unwrap();
        let status = wait_settled(&logins).await;
        assert_eq!(status.state, LoginState::None);
        // Stored right after it stopped waiting.
        for _ in 0..100 {
            if logins.status(&ada(), "s").await.unwrap().reason.is_some() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(logins.status(&ada(), "s").await.unwrap().reason.unwrap().contains(part));
    }
}

#[tokio::test]
async fn a_login_that_was_cancelled_is_not_finished_behind_anybodys_back() {
    let world = AuthServer::start().await;
    let store = Stores::in_memory();
    let logins = logins(&store, device(&world));
    logins.begin(&ada(), "s").await.unwrap();
    logins.logout(&ada(), "s").await.unwrap();
    auth_server::wait_until("the answer", || world.token_requests("device_code").len() == 1).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(store.credentials.all(&Owner::from(&ada()), "s").await.unwrap().is_empty());
}

#[tokio::test]
async fn a_server_without_a_browsers_way_is_logged_in_to_with_a_code() {
    let world = AuthServer::start().await;
    world.rules().metadata = json!({"authorization_endpoint": null});
    let begun = logins(&Stores::in_memory(), world.spec("s")).begin(&ada(), "s").await.unwrap();
    assert!(matches!(begun, LoginPrompt::Enter { .. }), "{begun:?}");
    world.rules().metadata = json!({"device_authorization_endpoint": null});
    let error = logins(&Stores::in_memory(), device(&world)).begin(&ada(), "s").await.unwrap_err();
    assert!(error.message.contains("with a code"), "{error}");
}

#[tokio::test]
async fn an_api_key_goes_where_the_settings_say() {
    for (place, name, sent) in [
        (KeyPlacement::Header { name: "X-Api-Key".into(), prefix: String::new() }, "x-api-key", "k3y &=?"),
        (
            KeyPlacement::Header { name: "Authorization".into(), prefix: "Token ".into() },
            "authorization",
            "Token k3y",
        ),
        (KeyPlacement::Query("key".into()), "key", "k3y &=?"),
    ] {
        let world = AuthServer::start().await;
        let key = sent.trim_start_matches("Token ");
        world.rules().key = Some((name.to_owned(), sent.to_owned()));
        let mut spec = world.spec("s");
        spec.auth = Auth::Key(place);
        let logins = logins(&Stores::in_memory(), spec);
        assert_eq!(logins.begin(&ada(), "s").await.unwrap(), LoginPrompt::ApiKey);
        let upstream = upstream(&world, &logins, "s");
        wait_listing(&upstream, |now| matches!(now.state, Listed::Down(_))).await;
        for bad in ["", "two\nlines", "k\u{7f}"] {
            assert_eq!(logins.complete(&ada(), "s", bad).await.unwrap_err().kind, Kind::Invalid);
        }
        logins.complete(&ada(), "s", &format!(" {key}\n")).await.unwrap();
        wait_ready(&upstream).await;
        call(&upstream, &RecordingPeer::new(1, None).peer(), "a", json!({})).await.unwrap();
        upstream.stop().await;
    }
}

#[tokio::test]
async fn a_program_is_told_its_key_by_a_variable_and_by_nothing_else() {
    let spec = LoginSpec {
        server: "s".into(),
        url: None,
        auth: Auth::Key(KeyPlacement::Environment("STUB_KEY".into())),
        sharing: LoginSharing::Shared,
        net: auth_server::net(&[]),
    };
    let logins = logins(&Stores::in_memory(), spec);
    let mut command = common::stub("plain");
    let script = command.args[0].clone();
    // It does not start without the key.
    command.program = "sh".into();
    command.args = vec!["-c".into(), format!("test \"$STUB_KEY\" = k3y && exec python3 {script} plain")];
    let mut spec = UpstreamSpec::stdio("s", command);
    spec.accounts = Some(logins.account(Owner::Shared, "s").unwrap().into());
    let upstream = Upstream::start(spec);
    wait_listing(&upstream, |now| matches!(&now.state, Listed::Down(why) if why.contains("login"))).await;
    logins.complete(&ada(), "s", "k3y").await.unwrap();
    wait_ready(&upstream).await;
    upstream.stop().await;
}
