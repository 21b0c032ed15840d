//! The page at which a person begins a login in a browser.

use super::page::{asked, said};
use super::{Admin, cookies};
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use octo_model::ToolError;
use std::sync::Arc;

const FETCH_SITE: &str = "sec-fetch-site";

/// Asks the person whether they want this login. Looking at the page changes nothing, since chats and mail programs open
/// addresses by themselves.
pub async fn page(State(admin): State<Arc<Admin>>, Path(id): Path<String>) -> Response {
    match admin.logins.confirmation(&id) {
        Ok(login) => {
            let for_whom = if login.is_shared { "everybody who uses this hub" } else { &login.caller };
            let text = format!(
                "{} asked this hub for a login at {}. Afterwards {for_whom} can use the account that you log in with; the login \
                 code goes to {}. Continue only if you asked for this yourself.",
                login.caller, login.server, login.code_host
            );
            asked(&format!("Log in at {}", login.server), &text, "Continue")
        }
        Err(error) => failed(&error),
    }
}

/// Binds the login to this browser and sends it to the authorization server. Only the page itself may ask for that: another
/// site could skip the question. The edge has refused other origins already, but for those that the settings allow.
pub async fn leave(State(admin): State<Arc<Admin>>, Path(id): Path<String>, headers: HeaderMap) -> Response {
    if headers.get(FETCH_SITE).is_some_and(|site| site != "same-origin") {
        return failed(
            &ToolError::denied("Another page tried to begin this login.")
                .hint("Open the address of the login itself."),
        );
    }
    let departure = admin.logins.depart(&id, &cookies(&headers)).and_then(|departure| {
        let value = |text: &str| HeaderValue::try_from(text).map_err(ToolError::internal);
        let mut cookie = value(&departure.set_cookie)?;
        cookie.set_sensitive(true);
        Ok([
            (header::LOCATION, value(&departure.url)?),
            (header::SET_COOKIE, cookie),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
            (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        ])
    });
    match departure {
        Ok(headers) => (StatusCode::SEE_OTHER, headers).into_response(),
        Err(error) => failed(&error),
    }
}

fn failed(error: &ToolError) -> Response {
    said(crate::status(error.kind), "The login cannot be started", &error.text())
}
