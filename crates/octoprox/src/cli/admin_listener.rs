//! Admin port: the whole admin API for `serve`, only the OAuth callback for `stdio`.

use crate::app::App;
use crate::app_context::AppContext;
use crate::app_error::AppError;
use crate::settings::{LoadedSettings, SettingOrigin, Settings, listen_address};
use axum::Router;
use octo_model::{Caller, ToolError};
use octo_oauth::Logins;
use octo_toolkit::BoxFuture;
use octo_web::{
    ADMIN_ROUTES, AdminConfig, BrowserLogins, EdgeSettings, LoginConfirmation, LoginRedirect, Route, Tokens,
};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Binds the admin port and stores its number, which is part of the callback URL. A port in use is an error only if it
/// was set explicitly.
pub async fn bind_admin(loaded: &mut LoadedSettings) -> Result<Option<TcpListener>, AppError> {
    let admin = &mut loaded.settings.admin;
    if !admin.enabled {
        return Ok(None);
    }
    let host = listen_address(&admin.host)
        .ok_or_else(|| AppError::invalid("admin.host: not an IP address or `localhost`."))?;
    match TcpListener::bind((host, admin.port)).await {
        Ok(listener) => {
            admin.port = listener.local_addr()?.port();
            Ok(Some(listener))
        }
        Err(error) if loaded.layers.origin("admin.port") == SettingOrigin::Default => {
            let port = admin.port;
            tracing::warn!(%error, port, "admin API disabled: cannot listen on its port; set another admin.port");
            Ok(None)
        }
        Err(error) => Err(AppError::new(format!(
            "Cannot listen on {host} port {}: {error}. Set another admin.port.",
            admin.port
        ))),
    }
}

/// Builds the admin API behind its edge.
pub fn admin_router(
    session: &AppContext,
    assembly: &App,
    tokens: Tokens,
    hosts: Vec<String>,
) -> Result<Router, AppError> {
    let settings = &session.loaded.settings;
    let logins = assembly.gateway.servers().logins().clone();
    let needed = tokens.clone();
    logins.offer_start_pages(move || needed.are_required());
    let parts = AdminConfig {
        hub: Arc::clone(&assembly.hub),
        logins: Arc::new(HubLogins(logins)),
        tokens: tokens.clone(),
    };
    let edge = EdgeSettings {
        allowed_hosts: hosts.into_iter().chain(callback_host(settings)).collect(),
        allowed_origins: settings.http.allowed_origins.clone(),
        tokens,
        routes: ADMIN_ROUTES,
        ..EdgeSettings::default()
    };
    Ok(octo_web::edge(octo_web::admin(parts), edge))
}

/// Binds the port of the OAuth callback on loopback, if it is free. Several hubs of one user share their logins, so
/// any of them can complete one.
pub async fn bind_callback(loaded: &mut LoadedSettings) -> Option<TcpListener> {
    let admin = &loaded.settings.admin;
    let host = listen_address(&admin.host).filter(|host| admin.enabled && host.is_loopback())?;
    let listener = TcpListener::bind((host, admin.port)).await.ok()?;
    loaded.settings.admin.port = listener.local_addr().ok()?.port();
    Some(listener)
}

const CALLBACK_ROUTES: &[Route] = &[Route {
    method: "GET",
    path: "/auth/callback",
    access: octo_web::Access::Open,
    about: "OAuth callback of a login",
}];

/// Serves the callback until the token is cancelled.
pub fn serve_callback(listener: TcpListener, session: &AppContext, assembly: &App, until: CancellationToken) {
    let parts = AdminConfig {
        hub: Arc::clone(&assembly.hub),
        logins: Arc::new(HubLogins(assembly.gateway.servers().logins().clone())),
        tokens: Tokens::none(),
    };
    let mut edge = EdgeSettings { routes: CALLBACK_ROUTES, ..EdgeSettings::default() };
    edge.allowed_hosts.extend(callback_host(&session.loaded.settings));
    let router = octo_web::edge(octo_web::admin(parts), edge);
    tokio::spawn(octo_web::serve(listener, router, until));
}

/// Host of `logins.callback_url`, if set.
fn callback_host(settings: &Settings) -> Option<String> {
    let url = url::Url::parse(settings.logins.callback_url.as_deref()?).ok()?;
    url.host_str().map(str::to_owned)
}

/// Logins of this hub, for the browser routes.
struct HubLogins(Logins);

impl BrowserLogins for HubLogins {
    fn confirmation(&self, id: &str) -> Result<LoginConfirmation, ToolError> {
        let login = self.0.confirmation(id)?;
        Ok(LoginConfirmation {
            server: login.server,
            caller: login.caller,
            is_shared: login.is_shared,
            code_host: login.code_host,
        })
    }

    fn begin_in_browser(&self, id: &str, cookies: &str) -> Result<LoginRedirect, ToolError> {
        let departure = self.0.bind_browser(id, cookies)?;
        Ok(LoginRedirect { url: departure.url, set_cookie: departure.set_cookie })
    }

    /// Requests without a token come from the local user.
    fn finish(&self, query: String) -> BoxFuture<'_, Result<String, ToolError>> {
        Box::pin(async move { Ok(self.0.callback(&query, Some(&Caller::local())).await?.server) })
    }

    fn finish_in_browser(
        &self,
        query: String,
        cookies: String,
    ) -> BoxFuture<'_, Result<Option<String>, ToolError>> {
        Box::pin(async move { Ok(self.0.browser_callback(&query, &cookies).await?.map(|done| done.server)) })
    }
}
