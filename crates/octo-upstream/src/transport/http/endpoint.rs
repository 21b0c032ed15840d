//! URL of one server, with its session.

pub(crate) mod exchange;

use super::event_stream::{EventStream, ResumePoint};
use super::http_client::{HttpClient, classify_error};
use super::http_redirect::redirect_target;
use super::request_headers::{EVENT_STREAM, connection_headers};
use super::response_body::{is_event_stream, read_beginning, response_error};
use crate::error::{UpstreamError, UpstreamResult};
use crate::transport::message_memory::ReceiveLimit;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use octo_oauth::{Account, UsedCredential};
use octo_wire::{Message, header};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// Timeout of a message without a response.
const NOTIFICATION_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum messages under way that nobody waits for.
const MAX_POSTS: usize = 256;
/// Maximum bytes read of a body that is discarded.
const MAX_DISCARDED_BYTES: usize = 1 << 16;

pub(crate) struct Endpoint {
    client: HttpClient,
    uri: Uri,
    /// The configured URL, or where the server redirected to.
    resolved_uri: OnceLock<Uri>,
    base_headers: HeaderMap,
    /// Headers since the handshake.
    session_headers: OnceLock<HeaderMap>,
    session_id: OnceLock<HeaderValue>,
    pub(super) receive_limit: ReceiveLimit,
    runtime: Handle,
    /// Messages under way that nobody waits for.
    posts: Arc<Semaphore>,
    account: Option<Arc<Account>>,
}

impl Endpoint {
    pub(crate) fn new(
        client: HttpClient,
        url: &str,
        settings: &BTreeMap<String, String>,
        receive_limit: ReceiveLimit,
    ) -> UpstreamResult<Self> {
        let uri: Uri = url.parse().map_err(|_| UpstreamError::NotSent(format!("not a URL: {url}")))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
            return Err(UpstreamError::NotSent(format!("not an http or https URL: {url}")));
        }
        Ok(Self {
            client,
            uri,
            resolved_uri: OnceLock::new(),
            base_headers: connection_headers(settings)?,
            session_headers: OnceLock::new(),
            session_id: OnceLock::new(),
            receive_limit,
            runtime: Handle::current(),
            posts: Arc::new(Semaphore::new(MAX_POSTS)),
            account: None,
        })
    }

    /// Uses this login from now on.
    pub(crate) fn with_account(self, account: Option<Arc<Account>>) -> Self {
        Self { account, ..self }
    }

    /// Stores the session id of the handshake's response.
    pub(super) fn store_session(&self, answer: &HeaderMap) {
        if let Some(session) = answer.get(header::SESSION) {
            let _ = self.session_id.set(session.clone());
        }
    }

    /// Adds the negotiated revision and session to all further requests.
    pub(crate) fn set_revision(&self, revision: &str) {
        let mut headers = self.base_headers.clone();
        if let Ok(revision) = HeaderValue::from_str(revision) {
            headers.insert(header::REVISION, revision);
        }
        if let Some(session) = self.session_id.get() {
            headers.insert(header::SESSION, session.clone());
        }
        let _ = self.session_headers.set(headers);
    }

    pub(super) fn headers(&self) -> HeaderMap {
        self.session_headers.get().unwrap_or(&self.base_headers).clone()
    }

    /// Opens a stream with GET: a new one, or one to resume.
    pub(super) async fn listen(&self, mark: &ResumePoint) -> UpstreamResult<EventStream> {
        let mut headers = self.headers();
        headers.insert(ACCEPT, EVENT_STREAM);
        headers.remove(CONTENT_TYPE);
        if let Some(id) = mark.id.as_deref().and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(header::LAST_EVENT, id);
        }
        let response = self.request(Method::GET, headers, Bytes::new()).await?;
        if response.status() == StatusCode::OK && is_event_stream(&response) {
            return Ok(EventStream::new(response.into_body(), &self.receive_limit, mark.clone()));
        }
        Err(self.error_from(response).await)
    }

    /// The configured URL, or where the server redirected to.
    pub(super) fn uri(&self) -> &Uri {
        self.resolved_uri.get().unwrap_or(&self.uri)
    }

    /// Sends a message that has no response.
    pub(crate) async fn send(&self, message: Message) -> UpstreamResult<()> {
        let response = self.request(Method::POST, self.headers(), message.to_bytes()).await?;
        self.discard(response).await
    }

    /// Sends a message to another URL of the server.
    pub(super) async fn send_at(&self, uri: &Uri, message: Message) -> UpstreamResult<()> {
        let response = self.request_at(uri, Method::POST, self.headers(), message.to_bytes()).await?;
        self.discard(response).await
    }

    async fn discard(&self, response: Response<Incoming>) -> UpstreamResult<()> {
        if !response.status().is_success() {
            return Err(self.error_from(response).await);
        }
        // Some servers respond all the same; the body is read so that the connection can be reused.
        if !is_event_stream(&response) {
            let _ = read_beginning(response.into_body(), MAX_DISCARDED_BYTES).await;
        }
        Ok(())
    }

    pub(crate) fn post(self: &Arc<Self>, message: Message) {
        let endpoint = self.clone();
        self.deliver(async move { endpoint.send(message).await });
    }

    pub(super) fn post_at(self: &Arc<Self>, uri: Uri, message: Message) {
        let endpoint = self.clone();
        self.deliver(async move { endpoint.send_at(&uri, message).await });
    }

    /// Sends a message that nobody waits for. A server that asks faster than it reads gets no more answers.
    fn deliver(&self, sent: impl Future<Output = UpstreamResult<()>> + Send + 'static) {
        let Ok(permit) = Arc::clone(&self.posts).try_acquire_owned() else {
            return tracing::warn!(target: "upstream", "message not delivered: too many are under way");
        };
        self.runtime.spawn(async move {
            let _permit = permit;
            match tokio::time::timeout(NOTIFICATION_TIMEOUT, sent).await {
                Ok(Ok(())) => {}
                Ok(Err(why)) => tracing::debug!(target: "upstream", %why, "message not delivered"),
                Err(_) => tracing::debug!(target: "upstream", "message not delivered: timeout"),
            }
        });
    }

    /// Ends the session, if any.
    pub(crate) async fn close(&self) {
        if self.session_id.get().is_some() {
            let _ = self.request(Method::DELETE, self.headers(), Bytes::new()).await;
        }
    }

    pub(super) async fn error_from(&self, response: Response<Incoming>) -> UpstreamError {
        response_error(response, self.session_id.get().is_some()).await
    }

    /// Sends a request. The first one of a connection may be redirected within the same host.
    pub(super) async fn request(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> UpstreamResult<Response<Incoming>> {
        match self.resolved_uri.get() {
            Some(place) => self.request_at(place, method, headers, body).await,
            // Boxed, because every request would carry its state otherwise.
            None => Box::pin(self.request_and_resolve(method, headers, body)).await,
        }
    }

    async fn request_and_resolve(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> UpstreamResult<Response<Incoming>> {
        let response = self.request_at(&self.uri, method.clone(), headers.clone(), body.clone()).await?;
        match redirect_target(&self.uri, &response) {
            None => {
                let _ = self.resolved_uri.set(self.uri.clone());
                Ok(response)
            }
            Some(target) => {
                self.request_at(self.resolved_uri.get_or_init(|| target), method, headers, body).await
            }
        }
    }

    /// Sends with the login, if any. A refused request is sent once more if there is a newer token: the server has not
    /// processed it.
    async fn request_at(
        &self,
        uri: &Uri,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> UpstreamResult<Response<Incoming>> {
        let Some(account) = &self.account else {
            return self.send_to(uri.clone(), method, headers, body).await;
        };
        let (used, response) = self.request_with_account(account, uri, &method, &headers, &body).await?;
        let status = response.status();
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
            && account
                .on_refused(used, status, response.headers())
                .await
                .map_err(UpstreamError::credential)?
        {
            let again = Box::pin(self.request_with_account(account, uri, &method, &headers, &body));
            return again.await.map(|(_, response)| response);
        }
        Ok(response)
    }

    async fn request_with_account(
        &self,
        account: &Account,
        uri: &Uri,
        method: &Method,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> UpstreamResult<(UsedCredential, Response<Incoming>)> {
        let (mut uri, mut headers) = (uri.clone(), headers.clone());
        let used = account.authorize(&mut uri, &mut headers).await.map_err(UpstreamError::credential)?;
        let response = self.send_to(uri, method.clone(), headers, body.clone()).await?;
        Ok((used, response))
    }

    async fn send_to(
        &self,
        uri: Uri,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> UpstreamResult<Response<Incoming>> {
        let mut request = http::Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        self.client.request(request).await.map_err(|error| classify_error(&error))
    }
}
