//! HTTP listener for the OAuth callback while a login is pending.

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

/// Listener for the callback, on IPv4 and IPv6 loopback, since `localhost` may resolve to either.
pub struct CallbackListener {
    listeners: Vec<TcpListener>,
    /// The port is not `admin.port`, so the redirect URL has to name it.
    is_other_port: bool,
}

impl CallbackListener {
    /// Binds `admin.port`. If that is in use, most likely by a hub, the hub receives the callback. A hub does not
    /// know the servers of bridges, so logins of bridges use a free port instead.
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

    /// Redirect URL for the authorization server.
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
            .fallback(|| async { render_page(StatusCode::NOT_FOUND, "Page not found.") })
            .with_state((place.logins.clone(), heard));
        for listener in self.listeners {
            tasks.spawn(octo_web::serve(listener, router.clone(), stop.clone()));
        }
        CallbackServer { stop, tasks }
    }
}

/// Running callback listener.
pub struct CallbackServer {
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl CallbackServer {
    /// Shuts down, after the browser has received the last page or after `patience`.
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
        Ok(_) => render_page(StatusCode::OK, "You are logged in. You can close this page."),
        Err(error) => render_page(StatusCode::BAD_REQUEST, &error.text()),
    };
    let _ = heard.send(LoginInput::Callback(done)).await;
    answer
}

/// Renders a page with escaped text and a policy that loads nothing else.
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
