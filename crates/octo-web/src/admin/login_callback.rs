//! Callback page of browser logins.

use super::html_page::message_page;
use super::{AdminState, cookies};
use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use std::sync::Arc;

/// Completes the login immediately if the port needs no tokens. Otherwise the browser could be anyone's: it completes a
/// login that it started at the hub's own page; for any other, the person who started it must paste the answer.
pub async fn callback_page(
    State(admin): State<Arc<AdminState>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    let query = query.unwrap_or_default();
    let finished = if admin.tokens.are_required() {
        admin.logins.finish_in_browser(query, cookies(&headers)).await
    } else {
        admin.logins.finish(query).await.map(Some)
    };
    match finished {
        Ok(Some(server)) => message_page(
            StatusCode::OK,
            "You are logged in",
            &format!("The hub can use {server} now. You can close this page."),
        ),
        Ok(None) => message_page(
            StatusCode::OK,
            "Almost done",
            "Copy the full URL of this page from the browser's address bar, and paste it where you started the login: \
             to your agent, to the command that started it, or to auth/complete of the admin API.",
        ),
        Err(error) => message_page(crate::http_status(error.kind), "Login failed", &error.text()),
    }
}
