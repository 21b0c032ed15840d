//! MCP over stdio: JSON lines, both eras on one connection.

use crate::client_context::{ClientContext, next_client_key};
use crate::client_peer::Outbox;
use crate::discover::negotiate_revision;
use crate::drain::DRAIN_NOTIFICATION;
use crate::incoming::{handle_incoming, response_message};
use crate::legacy_session::Session;
use crate::mcp::Mcp;
use crate::notifications::{NotificationFilter, change_notification, warning_notification};
use crate::rpc_errors::rpc_error;
use bytes::Bytes;
use octo_hub::{Change, ClientEpoch, ListOptions};
use octo_model::{Caller, Frontend, Json, JsonObject, RpcError};
use octo_wire::Level;
use octo_wire::{Id, Incoming, Message, Revision, Strictness, code, meta};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{broadcast, mpsc};
use tokio::task::{JoinHandle, JoinSet};

/// One client on one pair of pipes.
struct StdioConnection {
    mcp: Arc<Mcp>,
    out: Outbox,
    /// Session of the handshake; before it, and for modern requests, one without capabilities.
    session: Mutex<Arc<Session>>,
}

impl Mcp {
    /// Serves until the input ends.
    pub async fn serve_stdio(
        self: Arc<Self>,
        caller: Arc<Caller>,
        profile: String,
        options: ListOptions,
        input: impl AsyncRead + Unpin,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> std::io::Result<()> {
        let (out, outbox) = mpsc::channel(256);
        let writer = tokio::spawn(write_messages(outbox, output));
        let client = ClientContext {
            caller,
            frontend: Frontend::Stdio,
            profile,
            options,
            revision: Revision::NEWEST_LEGACY,
            capabilities: Arc::default(),
            level: None,
            key: next_client_key(),
            epoch: ClientEpoch::default(),
        };
        let session = Mutex::new(Session::transient(client));
        let connection = Arc::new(StdioConnection { mcp: self, out, session });
        let notices = tokio::spawn(forward_changes(Arc::clone(&connection)));
        let connection = OpenConnection { connection, notices };
        let outcome = read_messages(&connection.connection, input).await;
        drop(connection);
        let _ = writer.await;
        outcome
    }
}

/// Ends the session and its notifications when it is dropped, also if nobody waits for the connection any longer.
struct OpenConnection {
    connection: Arc<StdioConnection>,
    notices: JoinHandle<()>,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.notices.abort();
        self.connection.session().close();
    }
}

async fn write_messages(mut outbox: mpsc::Receiver<Message>, mut output: impl AsyncWrite + Unpin) {
    while let Some(message) = outbox.recv().await {
        let mut text = message.to_bytes().to_vec();
        text.push(b'\n');
        while let Ok(more) = outbox.try_recv() {
            text.extend_from_slice(&more.to_bytes());
            text.push(b'\n');
        }
        if output.write_all(&text).await.is_err() || output.flush().await.is_err() {
            return;
        }
    }
}

async fn read_messages(
    connection: &Arc<StdioConnection>,
    input: impl AsyncRead + Unpin,
) -> std::io::Result<()> {
    let mut lines = BufReader::with_capacity(64 << 10, input);
    let mut tasks = JoinSet::new();
    let most = connection.mcp.settings.max_body_bytes;
    loop {
        let mut line = Vec::new();
        if read_line(&mut lines, &mut line, most).await? == 0 {
            break;
        }
        while tasks.try_join_next().is_some() {}
        if line.len() > most {
            let why = format!("A message is limited to {most} bytes. Send less at once.");
            connection.send_error(code::INVALID_REQUEST, &why).await;
            continue;
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match Incoming::parse(Bytes::from(line), Strictness::Client) {
            Ok(Incoming::One(message)) => connection.handle_message(message, &mut tasks).await,
            Ok(Incoming::Batch(messages)) if connection.session().client.revision == Revision::R20250326 => {
                for message in messages {
                    connection.handle_message(message, &mut tasks).await;
                }
            }
            Ok(Incoming::Batch(_)) => {
                connection.send_error(code::INVALID_REQUEST, "Send one message at a time.").await
            }
            Err(fault) => connection.send_error(code::PARSE, fault.0).await,
        }
    }
    // Requests received before the end of the input are still answered.
    while tasks.join_next().await.is_some() {}
    Ok(())
}

/// Reads a whole line, but keeps at most `most + 1` bytes of it. Returns the number of bytes read; 0 at the end.
async fn read_line(
    lines: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
    most: usize,
) -> std::io::Result<usize> {
    let mut size = 0;
    loop {
        let piece = lines.fill_buf().await?;
        let end = piece.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let used = end.unwrap_or(piece.len());
        let room = (most + 1).saturating_sub(line.len()).min(used);
        line.extend_from_slice(piece.get(..room).unwrap_or_default());
        size += used;
        let is_done = end.is_some() || used == 0;
        lines.consume(used);
        if is_done {
            return Ok(size);
        }
    }
}

impl StdioConnection {
    fn session(&self) -> Arc<Session> {
        Arc::clone(&self.session.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn send_error(&self, code: i64, why: &str) {
        let _ = self.out.send(Message::Error { id: None, error: rpc_error(code, why) }).await;
    }

    async fn handle_message(self: &Arc<Self>, message: Message, tasks: &mut JoinSet<()>) {
        let (id, method, params) = match message {
            Message::Request { id, method, params } => (id, method, params),
            other => return drop(handle_incoming(&self.session(), other)),
        };
        let about = params.object("_meta");
        let modern = about.get(meta::REVISION).is_some();
        if method == "initialize" && !modern {
            let answer = self.initialize(id, &params).await;
            let _ = self.out.send(answer).await;
            return;
        }
        let under = self.session().start_request(&id);
        let connection = Arc::clone(self);
        tasks.spawn(async move {
            let cancel = under.cancel.clone();
            let done = if modern {
                tokio::select! {
                    done = connection.modern(&id, &method, params, &about, &cancel) => done,
                    () = cancel.cancelled() => return,
                }
            } else {
                let (mcp, session, out) = (&connection.mcp, connection.session(), connection.out.clone());
                mcp.handle_legacy(session, &method, params, out, cancel.clone()).await
            };
            if !cancel.is_cancelled() {
                let _ = connection.out.send(response_message(id, done)).await;
            }
            drop(under);
        });
    }

    async fn initialize(&self, id: Id, params: &JsonObject) -> Message {
        let mut client = self.session().client.clone();
        client.revision = negotiate_revision(params.text("protocolVersion").as_deref());
        client.capabilities = Arc::new(params.object("capabilities").detached());
        client.epoch = ClientEpoch::default();
        let result = self.mcp.initialize_result(&client).await;
        let session = Session::new(client);
        session.mark_initialized();
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = session;
        Message::Response { id, result }
    }

    async fn modern(
        &self,
        id: &Id,
        method: &str,
        params: JsonObject,
        about: &JsonObject,
        cancel: &tokio_util::sync::CancellationToken,
    ) -> Result<JsonObject, RpcError> {
        crate::header_checks::check_revision(&about.text(meta::REVISION).unwrap_or_default())?;
        if !about.get(meta::CAPABILITIES).is_some_and(Json::is_object) {
            return Err(rpc_error(
                code::INVALID_PARAMS,
                format!("params._meta needs `{}`.", meta::CAPABILITIES),
            ));
        }
        let mut client = self.session().client.clone();
        client.revision = Revision::MODERN;
        client.capabilities = Arc::new(about.object(meta::CAPABILITIES));
        client.level = about.text(meta::LOG_LEVEL).and_then(|text| Level::parse(&text));
        if method != "subscriptions/listen" {
            return self.mcp.handle_modern(&client, method, params, self.out.clone(), cancel.clone()).await;
        }
        let mut listening = self.mcp.listen(&client, id.clone(), &params).await?;
        let _ = self.out.send(listening.acknowledgement()).await;
        while let Some(message) = listening.next().await {
            let _ = self.out.send(message).await;
        }
        match listening.end_response() {
            Message::Response { result, .. } => Ok(result),
            _ => Ok(JsonObject::new()),
        }
    }
}

/// Notifies a client after its legacy handshake of changes.
async fn forward_changes(connection: Arc<StdioConnection>) {
    let mut changes = connection.mcp.hub.changes();
    let mut drain = connection.mcp.drain_request();
    loop {
        let change = tokio::select! {
            change = changes.recv() => change,
            params = drain.next() => {
                let method = DRAIN_NOTIFICATION.to_owned();
                let _ = connection.out.send(Message::Notification { method, params }).await;
                continue;
            }
        };
        let change: Change = match change {
            Ok(change) => change,
            Err(broadcast::error::RecvError::Lagged(_)) => continue,
            Err(broadcast::error::RecvError::Closed) => return,
        };
        let session = connection.session();
        if !session.is_initialized() {
            continue;
        }
        let message = change_notification(
            &change,
            &NotificationFilter::all_lists(),
            |uri| session.is_subscribed(uri),
            None,
        );
        if let Some(message) = message.or_else(|| warning_notification(&change, &session)) {
            let _ = connection.out.send(message).await;
        }
    }
}
