//! Change notifications: listen streams (modern) and resource subscriptions (legacy).

use crate::error::{UpstreamError, UpstreamResult};
use crate::lifecycle::server::Server;
use crate::listing::resource_subscriptions::SubscribedUris;
use crate::session::connection::{Connection, OutgoingRequest};
use octo_model::{ItemKind, Json, JsonObject};
use octo_toolkit::Backoff;
use octo_wire::code;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const LISTEN_METHOD: &str = "subscriptions/listen";
/// A stream that lasted this long is reopened immediately.
const STABLE_AFTER: Duration = Duration::from_secs(5);
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

/// Follows list changes of a modern server.
pub(crate) async fn follow_list_changes(server: Arc<Server>, connection: Arc<Connection>) {
    let filter = list_filter(&connection.server.capabilities);
    if filter.is_empty() {
        return;
    }
    let mut backoff = Backoff::default();
    loop {
        let since = Instant::now();
        let why = listen(&connection, filter.clone(), None).await.err();
        if !should_reopen(&server, &connection, why) {
            return;
        }
        if since.elapsed() > STABLE_AFTER {
            backoff.reset();
        }
        tokio::time::sleep(backoff.next_delay()).await;
        // It is unknown what changed while no stream was open.
        server.list_changes.mark(&ItemKind::ALL);
    }
}

fn list_filter(capabilities: &JsonObject) -> JsonObject {
    let pairs = [
        ("tools", "toolsListChanged"),
        ("prompts", "promptsListChanged"),
        ("resources", "resourcesListChanged"),
    ];
    let offered =
        pairs.into_iter().filter(|(capability, _)| capabilities.object(capability).is_true("listChanged"));
    offered.map(|(_, key)| (key.to_owned(), Json::from(true))).collect()
}

async fn listen(
    connection: &Connection,
    filter: JsonObject,
    opened: Option<oneshot::Sender<()>>,
) -> UpstreamResult {
    let params = JsonObject::new().with("notifications", filter);
    connection
        .request(OutgoingRequest { acknowledged: opened, ..OutgoingRequest::internal(LISTEN_METHOD, params) })
        .await
}

/// Whether to reopen the stream. An unreachable server closes the connection.
fn should_reopen(server: &Server, connection: &Connection, why: Option<UpstreamError>) -> bool {
    match why {
        None
        | Some(
            UpstreamError::ConnectionLost(_)
            | UpstreamError::ConnectionReset(_)
            | UpstreamError::Timeout(_)
            | UpstreamError::CredentialUnusable(_),
        ) => !connection.closed.is_set(),
        Some(UpstreamError::Status { code: 500.., .. }) => true,
        Some(why @ UpstreamError::NotSent(_)) => {
            connection.closed.set(why);
            false
        }
        Some(why) => {
            let unknown = matches!(&why, UpstreamError::Rpc(error) if error.code == code::METHOD_NOT_FOUND);
            tracing::debug!(target: "upstream", server = %server.name, %why, unknown, "no change stream");
            false
        }
    }
}

/// Follows resource updates of a modern server. A new stream is opened before the old one is closed.
pub(crate) async fn follow_resource_updates(server: Arc<Server>, connection: Arc<Connection>) {
    let mut wanted = server.subscriptions.desired();
    let mut backoff = Backoff::default();
    let mut stream: Option<UpdateStream>;
    loop {
        let now = wanted.borrow_and_update().clone();
        let fresh = UpdateStream::open(&connection, &now).await;
        let is_open = fresh.as_ref().is_none_or(|fresh| fresh.is_acknowledged);
        // The old stream ends here, after the new one was acknowledged.
        stream = fresh;
        server.subscriptions.acknowledge(now.version, is_open);
        tokio::select! {
            changed = wanted.changed() => if changed.is_err() { return },
            (why, lasted) = wait_end(&mut stream) => {
                if !should_reopen(&server, &connection, why) {
                    return;
                }
                if lasted > STABLE_AFTER {
                    backoff.reset();
                }
                tokio::time::sleep(backoff.next_delay()).await;
            }
        }
    }
}

/// A stream of updates; closed on drop.
struct UpdateStream {
    task: JoinHandle<UpstreamResult>,
    since: Instant,
    is_acknowledged: bool,
}

impl UpdateStream {
    async fn open(connection: &Arc<Connection>, wanted: &SubscribedUris) -> Option<Self> {
        if wanted.uris.is_empty() {
            return None;
        }
        let uris: Vec<Json> = wanted.uris.iter().map(|uri| Json::text(uri)).collect();
        let filter = JsonObject::new().with("resourceSubscriptions", Json::array(&uris));
        let (opened, acknowledged) = oneshot::channel();
        let connection = connection.clone();
        let task = tokio::spawn(async move { listen(&connection, filter, Some(opened)).await });
        // The sender is dropped with its request, which ends the wait as well.
        let is_open = tokio::time::timeout(OPEN_TIMEOUT, acknowledged).await.is_ok_and(|told| told.is_ok());
        Some(Self { task, since: Instant::now(), is_acknowledged: is_open })
    }
}

impl Drop for UpdateStream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Waits for the end of a stream; forever if there is none.
async fn wait_end(stream: &mut Option<UpdateStream>) -> (Option<UpstreamError>, Duration) {
    let Some(open) = stream else {
        return std::future::pending().await;
    };
    let outcome = (&mut open.task).await;
    let lasted = open.since.elapsed();
    *stream = None;
    (outcome.ok().and_then(Result::err), lasted)
}

/// Renews all resource subscriptions at a legacy server.
pub(crate) async fn resubscribe(server: Arc<Server>, connection: Arc<Connection>) {
    let uris = server.subscriptions.desired().borrow().uris.clone();
    for uri in uris {
        if let Err(why) = subscribe(&server, &connection, &uri, true).await {
            tracing::warn!(target: "upstream", server = %server.name, %why, "cannot renew the subscription");
        }
    }
}

/// Subscribes to a resource at a legacy server, or unsubscribes.
pub(crate) async fn subscribe(
    server: &Server,
    connection: &Connection,
    uri: &str,
    on: bool,
) -> UpstreamResult<()> {
    let method = if on { "resources/subscribe" } else { "resources/unsubscribe" };
    let params = JsonObject::new().with("uri", uri);
    connection.request_within(server.spec.list_timeout, method, params).await.map(drop)
}
