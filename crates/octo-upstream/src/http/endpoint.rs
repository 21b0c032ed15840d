//! One server's address with the session that was agreed on.

use super::answer::{is_stream, refusal, whole};
use super::client::{Client, fail};
use super::events::{Events, Mark};
use super::headers::{STREAM, standing};
use super::moved::moved;
use crate::fail::{Fail, Outcome};
use crate::login::{Account, Used};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use octo_wire::{Message, header};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::Handle;

/// A message without an answer is given up after this.
const POSTED: Duration = Duration::from_secs(10);
/// So much of an answer to a message without one is read.
const POLITE: usize = 1 << 16;

pub(crate) struct Endpoint {
    client: Client,
    uri: Uri,
    /// Where the server really is: there, or where it has sent us on to.
    place: OnceLock<Uri>,
    opening: HeaderMap,
    /// The headers since the handshake.
    agreed: OnceLock<HeaderMap>,
    session: OnceLock<HeaderValue>,
    pub(super) limit: usize,
    runtime: Handle,
    account: Option<Arc<Account>>,
}

impl Endpoint {
    pub(crate) fn new(
        client: Client,
        url: &str,
        settings: &BTreeMap<String, String>,
        limit: usize,
    ) -> Outcome<Self> {
        let uri: Uri = url.parse().map_err(|_| Fail::NotSent(format!("{url} is not an address")))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
            return Err(Fail::NotSent(format!("{url} is not an http or https address")));
        }
        Ok(Self {
            client,
            uri,
            place: OnceLock::new(),
            opening: standing(settings)?,
            agreed: OnceLock::new(),
            session: OnceLock::new(),
            limit,
            runtime: Handle::current(),
            account: None,
        })
    }

    /// Speaks with this login from here on.
    pub(crate) fn with_account(self, account: Option<Arc<Account>>) -> Self {
        Self { account, ..self }
    }

    /// Keeps the session that the answer to the handshake names.
    pub(super) fn join(&self, answer: &HeaderMap) {
        if let Some(session) = answer.get(header::SESSION) {
            let _ = self.session.set(session.clone());
        }
    }

    /// From here on requests name the revision and the session that the handshake gave.
    pub(crate) fn agree(&self, revision: &str) {
        let mut headers = self.opening.clone();
        if let Ok(revision) = HeaderValue::from_str(revision) {
            headers.insert(header::REVISION, revision);
        }
        if let Some(session) = self.session.get() {
            headers.insert(header::SESSION, session.clone());
        }
        let _ = self.agreed.set(headers);
    }

    pub(super) fn headers(&self) -> HeaderMap {
        self.agreed.get().unwrap_or(&self.opening).clone()
    }

    /// Opens a stream with GET: a new one, or one that broke.
    pub(super) async fn listen(&self, mark: &Mark) -> Outcome<Events> {
        let mut headers = self.headers();
        headers.insert(ACCEPT, STREAM);
        headers.remove(CONTENT_TYPE);
        if let Some(id) = mark.id.as_deref().and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(header::LAST_EVENT, id);
        }
        let response = self.call(Method::GET, headers, Bytes::new()).await?;
        if response.status() == StatusCode::OK && is_stream(&response) {
            return Ok(Events::new(response.into_body(), self.limit, mark.clone()));
        }
        Err(self.refused(response).await)
    }

    /// Sends a message that has no answer.
    pub(crate) async fn send(&self, message: Message) -> Outcome<()> {
        let response = self.call(Method::POST, self.headers(), message.to_bytes()).await?;
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        // Some servers answer all the same; it is read so that the connection can be used again.
        if !is_stream(&response) {
            let _ = whole(response.into_body(), POLITE).await;
        }
        Ok(())
    }

    pub(crate) fn post(self: &Arc<Self>, message: Message) {
        let endpoint = self.clone();
        self.runtime.spawn(async move {
            match tokio::time::timeout(POSTED, endpoint.send(message)).await {
                Ok(Ok(())) => {}
                Ok(Err(why)) => tracing::debug!(target: "upstream", %why, "a message was not taken"),
                Err(_) => tracing::debug!(target: "upstream", "a message was not taken in time"),
            }
        });
    }

    /// Ends the session, where there is one.
    pub(crate) async fn close(&self) {
        if self.session.get().is_some() {
            let _ = self.call(Method::DELETE, self.headers(), Bytes::new()).await;
        }
    }

    pub(super) async fn refused(&self, response: Response<Incoming>) -> Fail {
        refusal(response, self.session.get().is_some()).await
    }

    /// Sends a request. The first one of a connection may be sent on to another place on the same host.
    pub(super) async fn call(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Outcome<Response<Incoming>> {
        match self.place.get() {
            Some(place) => self.call_at(place, method, headers, body).await,
            None => self.find(method, headers, body).await,
        }
    }

    async fn find(&self, method: Method, headers: HeaderMap, body: Bytes) -> Outcome<Response<Incoming>> {
        let response = self.call_at(&self.uri, method.clone(), headers.clone(), body.clone()).await?;
        match moved(&self.uri, &response) {
            None => {
                let _ = self.place.set(self.uri.clone());
                Ok(response)
            }
            Some(target) => self.call_at(self.place.get_or_init(|| target), method, headers, body).await,
        }
    }

    /// With the login, where there is one. What was refused goes out once more when there is a better token: the server has
    /// not looked at it.
    async fn call_at(
        &self,
        uri: &Uri,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Outcome<Response<Incoming>> {
        let Some(account) = &self.account else {
            return self.send_to(uri.clone(), method, headers, body).await;
        };
        let (used, response) = self.call_as(account, uri, &method, &headers, &body).await?;
        let status = response.status();
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
            && account.refused(used, status, response.headers()).await?
        {
            return self.call_as(account, uri, &method, &headers, &body).await.map(|(_, response)| response);
        }
        Ok(response)
    }

    async fn call_as(
        &self,
        account: &Account,
        uri: &Uri,
        method: &Method,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Outcome<(Used, Response<Incoming>)> {
        let (mut uri, mut headers) = (uri.clone(), headers.clone());
        let used = account.dress(&mut uri, &mut headers).await?;
        let response = self.send_to(uri, method.clone(), headers, body.clone()).await?;
        Ok((used, response))
    }

    async fn send_to(
        &self,
        uri: Uri,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Outcome<Response<Incoming>> {
        let mut request = http::Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        self.client.request(request).await.map_err(|error| fail(&error))
    }
}
