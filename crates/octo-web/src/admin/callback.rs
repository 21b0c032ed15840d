//! The page that a browser comes back to after a login.

use super::Admin;
use axum::extract::{RawQuery, State};
use axum::response::{Html, IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use octo_model::ToolError;
use octo_toolkit::BoxFuture;
use std::sync::Arc;

/// Finishes a login with the part of the address behind `?`; the name of the server.
pub type Finish = Arc<dyn Fn(String) -> BoxFuture<'static, Result<String, ToolError>> + Send + Sync>;

/// Nothing may run or be fetched in the page, and no address of it may be told to others.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
);

/// Where nobody else can come, the login is finished at once. Elsewhere the browser could be anybody's: whoever began the login
/// has to give the answer themselves.
pub async fn page(State(admin): State<Arc<Admin>>, RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    if admin.tokens.are_required() {
        return said(
            StatusCode::OK,
            "Almost done",
            "Copy the whole address of this page, from the browser's address bar, and paste it where you began the login: \
             to your agent, to `octoprox login`, or to auth/complete of the admin API.",
        );
    }
    match (admin.finish)(query).await {
        Ok(server) => said(
            StatusCode::OK,
            "You are logged in",
            &format!("The hub can use {server} now. You can close this page."),
        ),
        Err(error) => said(crate::status(error.kind), "The login did not work", &error.text()),
    }
}

fn said(status: StatusCode, title: &str, text: &str) -> Response {
    let (title, text) = (escaped(title), escaped(text));
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><style>body{{font:18px/1.5 system-ui,sans-serif;\
         max-width:34em;margin:15vh auto;padding:0 1em;color:#1a1a2e;background:#fafafa}}h1{{font-size:1.4em}}\
         @media(prefers-color-scheme:dark){{body{{color:#eee;background:#16161d}}}}</style>\
         <h1>{title}</h1><p>{text}</p></html>"
    );
    let headers = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    (status, headers, Html(page)).into_response()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
