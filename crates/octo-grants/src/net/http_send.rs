//! One request from start to end: queue, redirects, body.

use super::host_queue::HostSlot;
use super::redirect::RedirectHop;
use super::{Net, NetRequest, NetResponse, NetState, body, headers, net_errors, url_check};
use crate::connector::{Connector, tls_connector};
use bytes::Bytes;
use http::{Method, Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use octo_model::ToolError;
use std::time::Duration;
use tokio::time::Instant;
use url::Url;

pub(super) type Client = legacy::Client<Connector, Full<Bytes>>;

/// Idle timeout of pooled connections.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Upper bound for the caller's limit.
const MAX_REDIRECTS: usize = 20;
/// Upper bound for the caller's timeout.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

impl Net {
    /// Sends a request, follows redirects and reads the response, within the limits of the request.
    pub async fn send(&self, ask: NetRequest) -> Result<NetResponse, ToolError> {
        let limit = ask.timeout.min(MAX_TIMEOUT);
        let host = ask.url.host_str().unwrap_or_default().to_owned();
        let whole = self.0.run(ask, Instant::now() + limit);
        tokio::time::timeout(limit, whole).await.map_err(|_| net_errors::timeout_error(&host, limit))?
    }
}

impl NetState {
    async fn run(&self, ask: NetRequest, deadline: Instant) -> Result<NetResponse, ToolError> {
        let start = Instant::now();
        url_check::check_url(&ask.url, &self.allow)?;
        if matches!(ask.method, Method::CONNECT | Method::TRACE) {
            return Err(ToolError::invalid(format!("The method {} is not supported.", ask.method))
                .hint("Use GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS."));
        }
        let headers = headers::complete_headers(ask.headers, &self.user_agent)?;
        let mut hop = RedirectHop { method: ask.method, url: ask.url, headers, body: ask.body };
        let mut left = ask.max_redirects.min(MAX_REDIRECTS);
        loop {
            let turn = self.queue.acquire(&hop.url, deadline).await?;
            let mut answer = self.exchange(&hop, &turn).await?;
            let follows = ask.max_redirects > 0;
            if let Some(next) =
                if follows { hop.next(answer.status(), answer.headers(), &self.allow)? } else { None }
            {
                left = left.checked_sub(1).ok_or_else(|| too_many_redirects(&hop.url))?;
                hop = next;
                continue;
            }
            let mut headers = std::mem::take(answer.headers_mut());
            let status = answer.status();
            let host = hop.url.host_str().unwrap_or_default();
            let read = body::read_decoded(answer.into_body(), &mut headers, ask.max_bytes).await;
            let (body, truncated) =
                read.map_err(|error| net_errors::body_error(host, &hop.method, &error))?;
            return Ok(NetResponse { status, headers, url: hop.url, body, truncated, took: start.elapsed() });
        }
    }

    async fn exchange(&self, hop: &RedirectHop, turn: &HostSlot) -> Result<Response<Incoming>, ToolError> {
        let mut request = Request::new(Full::new(hop.body.clone().unwrap_or_default()));
        *request.method_mut() = hop.method.clone();
        *request.uri_mut() = to_uri(&hop.url)?;
        *request.headers_mut() = hop.headers.clone();
        let host = hop.url.host_str().unwrap_or_default();
        let answer = self
            .client()
            .await?
            .request(request)
            .await
            .map_err(|error| net_errors::request_error(host, &hop.method, &error))?;
        turn.record_response(answer.status(), answer.headers());
        Ok(answer)
    }

    /// Created on first use, because loading root certificates takes a while.
    async fn client(&self) -> Result<&Client, ToolError> {
        let made = self.client.get_or_try_init(|| async {
            let dialler = self.dialler.clone();
            let connector = tokio::task::spawn_blocking(move || tls_connector(dialler))
                .await
                .map_err(ToolError::internal)?
                .map_err(ToolError::internal)?;
            Ok(legacy::Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(POOL_IDLE_TIMEOUT)
                .pool_max_idle_per_host(self.queue.max_concurrent())
                .timer(TokioTimer::new())
                .build(connector))
        });
        made.await
    }
}

/// Converts the URL to the client's type; refuses it if the two parsers disagree on the authority.
fn to_uri(url: &Url) -> Result<Uri, ToolError> {
    let text = url.as_str();
    let text = text.split_once('#').map_or(text, |(whole, _)| whole);
    let odd = || ToolError::invalid("The address contains invalid characters.").hint("Percent-encode them.");
    let uri: Uri = text.parse().map_err(|error| odd().detail(error))?;
    let agreed = uri.host() == url.host_str()
        && uri.port_u16() == url.port()
        && uri.scheme_str() == Some(url.scheme());
    if agreed { Ok(uri) } else { Err(odd()) }
}

fn too_many_redirects(url: &Url) -> ToolError {
    let host = url.host_str().unwrap_or_default();
    ToolError::unavailable(format!("Too many redirects; the last came from `{host}`."))
        .hint("The site may need cookies or a login. Request the final address, or allow more redirects.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::allow_list::AllowList;
    use proptest::prelude::*;

    #[test]
    fn odd_but_legal_addresses_can_be_sent() {
        for text in [
            "http://x.example/a|b^c`d{e}[f]\"g\"?q=|^`{}[]\"'<>#frag",
            "http://x.example/ä?ö=ü",
            "http://a_b.example/",
            "http://[2a00::1]:8080/",
            "http://1.1.1.1:81/",
            "https://x.example./",
            "http://x.example?q",
            "http://x.example/%zz",
        ] {
            let url = url_check::parse_url(text, &AllowList::default()).unwrap();
            assert_eq!(to_uri(&url).unwrap().host(), url.host_str(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_two_parsers_agree_or_nothing_is_sent(text in "https?:[/\\\\]{0,3}[ -~äﬀ。]{0,12}[@:.\\[\\]/?#%]{0,3}[ -~]{0,12}") {
            if let Ok(url) = url_check::parse_url(&text, &AllowList::default()) && let Ok(uri) = to_uri(&url) {
                prop_assert_eq!(uri.host(), url.host_str());
                prop_assert_eq!(uri.port_u16().or_else(|| url.port_or_known_default()), url.port_or_known_default());
                prop_assert!(!uri.authority().unwrap().as_str().contains('@'));
            }
        }
    }
}
