//! The page that a browser comes back to, for just as long as a login waits.

use crate::app_context::AppContext;
use crate::cli::commands::login_command::{LoginInput, LoginTarget};
use crate::gateway::callback_url;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use octo_oauth::Logins;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Where browsers come to; both forms of this machine's own address, since either may be what `localhost` means to them.
pub struct CallbackListener {
    listeners: Vec<TcpListener>,
    /// The port is not the usual one, so the login has to name it.
    is_other_port: bool,
}

impl CallbackListener {
    /// At the usual port. Where somebody has that already, most likely a hub, they take the answer; but a hub does not know
    /// the servers of bridges, and for these any other port does.
    pub async fn bind(session: &AppContext, is_bridge: bool) -> Self {
        let port = session.loaded.settings.admin.port;
        if port != 0
            && let Ok(four) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await
        {
            let six = TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await.ok();
            return Self { listeners: [four].into_iter().chain(six).collect(), is_other_port: false };
        }
        let is_elsewhere = is_bridge || port == 0;
        let any = if is_elsewhere { TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.ok() } else { None };
        Self { listeners: any.into_iter().collect(), is_other_port: is_elsewhere }
    }

    pub fn is_open(&self) -> bool {
        !self.listeners.is_empty()
    }

    /// The address that is told to the authorization server.
    pub fn redirect(&self, session: &AppContext) -> String {
        let port =
            self.listeners.first().and_then(|listener| listener.local_addr().ok()).map(|own| own.port());
        match port {
            Some(port) if self.is_other_port => format!("http://127.0.0.1:{port}/auth/callback"),
            _ => callback_url(session),
        }
    }

    pub fn serve(self, place: &LoginTarget, heard: mpsc::Sender<LoginInput>) -> CallbackServer {
        let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
        let router = Router::new()
            .route("/auth/callback", get(handle_callback))
            .fallback(|| async { render_page(StatusCode::NOT_FOUND, "There is nothing here.") })
            .with_state((place.logins.clone(), heard));
        for listener in self.listeners {
            tasks.spawn(octo_web::serve(listener, router.clone(), stop.clone()));
        }
        CallbackServer { stop, tasks }
    }
}

/// The page while it is there.
pub struct CallbackServer {
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl CallbackServer {
    /// Lets the browser have the last page.
    pub async fn shutdown(mut self, patience: Duration) {
        self.stop.cancel();
        let ends = async { while self.tasks.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(patience, ends).await;
    }
}

type CallbackState = (Logins, mpsc::Sender<LoginInput>);

async fn handle_callback(
    State((logins, heard)): State<CallbackState>,
    RawQuery(query): RawQuery,
) -> Response {
    let done = LoginTarget::finish_callback(&logins, query.as_deref().unwrap_or_default()).await;
    let answer = match &done {
        Ok(_) => render_page(StatusCode::OK, "You are logged in. This page can be closed."),
        Err(error) => render_page(StatusCode::BAD_REQUEST, &error.text()),
    };
    let _ = heard.send(LoginInput::Callback(done)).await;
    answer
}

/// Plain words; nothing that came from outside stands in them unescaped, and nothing else is loaded.
fn render_page(status: StatusCode, words: &str) -> Response {
    let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let html = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Octoprox</title>\n<h1>Octoprox</h1>\n<p>{words}</p>\n</html>\n"
    );
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ];
    (status, headers, html).into_response()
}
