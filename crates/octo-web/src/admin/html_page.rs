//! HTML pages for people.

use axum::response::{Html, IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};

/// No scripts, no external resources, no framing.
const PAGE_CSP: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
);
/// The same with a form. Its response redirects to the authorization server, and from there anywhere, so no list of
/// URLs fits `form-action`.
const FORM_CSP: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
);

/// A page with a message.
pub fn message_page(status: StatusCode, title: &str, text: &str) -> Response {
    // Its URL must not leak to other sites.
    render_page(status, title, text, "", [PAGE_CSP, HeaderValue::from_static("no-referrer")])
}

/// A page with one button, which posts to the page's own URL.
pub fn confirm_page(title: &str, text: &str, button: &str) -> Response {
    let form = format!("<form method=\"post\"><button>{}</button></form>", escape_html(button));
    // Without a referrer the browser would not send the origin of the form either.
    render_page(StatusCode::OK, title, text, &form, [FORM_CSP, HeaderValue::from_static("same-origin")])
}

fn render_page(
    status: StatusCode,
    title: &str,
    text: &str,
    form: &str,
    [policy, referrer]: [HeaderValue; 2],
) -> Response {
    let (title, text) = (escape_html(title), escape_html(text));
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><style>body{{font:18px/1.5 system-ui,sans-serif;\
         max-width:34em;margin:15vh auto;padding:0 1em;color:#1a1a2e;background:#fafafa}}h1{{font-size:1.4em}}\
         button{{font:inherit;padding:.4em 1.2em}}\
         @media(prefers-color-scheme:dark){{body{{color:#eee;background:#16161d}}}}</style>\
         <h1>{title}</h1><p>{text}</p>{form}</html>"
    );
    let headers = [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::REFERRER_POLICY, referrer),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    (status, headers, Html(page)).into_response()
}

fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
