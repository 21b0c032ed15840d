//! Start page of a browser login.

use super::html_page::{confirm_page, message_page};
use super::{AdminState, cookies};
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use octo_model::ToolError;
use std::sync::Arc;

const FETCH_SITE: &str = "sec-fetch-site";

/// Asks the person to confirm the login. Viewing the page changes nothing, because chat and mail programs open URLs
/// automatically.
pub async fn confirm_login(State(admin): State<Arc<AdminState>>, Path(id): Path<String>) -> Response {
    match admin.logins.confirmation(&id) {
        Ok(login) => {
            let for_whom = if login.is_shared { "all users of this hub" } else { &login.caller };
            let text = format!(
                "{} asked this hub for a login at {}. Afterwards {for_whom} can use the account that you log in with; the login \
                 code goes to {}. Continue only if you asked for this yourself.",
                login.caller, login.server, login.code_host
            );
            confirm_page(&format!("Log in at {}", login.server), &text, "Continue")
        }
        Err(error) => error_page(&error),
    }
}

/// Binds the login to this browser and redirects it to the authorization server. Only the page itself may request that:
/// another site could skip the confirmation. The edge has already refused other origins, except those that the settings
/// allow.
pub async fn begin_login(
    State(admin): State<Arc<AdminState>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    if headers.get(FETCH_SITE).is_some_and(|site| site != "same-origin") {
        return error_page(
            &ToolError::denied("Another page tried to start this login.")
                .hint("Open the URL of the login directly."),
        );
    }
    let departure = admin.logins.begin_in_browser(&id, &cookies(&headers)).and_then(|departure| {
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
        Err(error) => error_page(&error),
    }
}

fn error_page(error: &ToolError) -> Response {
    message_page(crate::http_status(error.kind), "The login cannot be started", &error.text())
}
