//! State of a session that another hub can resume: the handshake, subscriptions, and the requests without a response.

use super::hub_protocol::DrainParams;
use bytes::Bytes;
use octo_mcp::DRAIN_NOTIFICATION;
use octo_model::{JsonObject, RpcError};
use octo_wire::{Id, Incoming, Message, Revision, Strictness, code};
use std::collections::VecDeque;

/// A request that ends every hub must not do so for ever.
const MAX_REPEATS: u8 = 2;
/// Ids of requests that the relay itself makes.
const OWN_ID_PREFIX: &str = "octoprox-relay-";
/// Methods that change nothing, so that another hub can be asked again.
const READ_METHODS: [&str; 16] = [
    "completion/complete",
    "initialize",
    "logging/setLevel",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "server/discover",
    "skills/get",
    "skills/list",
    "tasks/get",
    "tools/list",
];
const LISTEN_METHOD: &str = "subscriptions/listen";

/// A line for the hub.
struct OutgoingLine {
    bytes: Bytes,
    written: usize,
    kind: LineKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum LineKind {
    Request(Id),
    /// A response or a cancellation, which a hub needs to finish its calls.
    Reply,
    Other,
}

/// A request of the client without a response.
struct PendingRequest {
    id: Id,
    method: String,
    /// Kept if another hub can be asked again.
    line: Option<Bytes>,
    /// Whether a hub may have received it.
    is_sent: bool,
    repeats: u8,
}

/// State of one client's session, over all hubs that serve it.
#[derive(Default)]
pub struct ResumableSession {
    initialize: Option<JsonObject>,
    revision: Option<String>,
    is_initialized: bool,
    log_level: Option<JsonObject>,
    subscriptions: Vec<(String, JsonObject)>,
    pending: Vec<PendingRequest>,
    queue: VecDeque<OutgoingLine>,
    next_own_id: u64,
    /// Token of the present hub, with which it asks the session to leave.
    drain_token: String,
    /// The hub's request to leave.
    drain: Option<DrainParams>,
}

impl ResumableSession {
    /// Takes a line of the client.
    pub fn accept_client_line(&mut self, line: Bytes) {
        match Incoming::parse(line.clone(), Strictness::Client) {
            Ok(Incoming::One(message)) => self.accept_client_message(message, line),
            Ok(Incoming::Batch(messages)) if self.has_batches() => {
                for message in messages {
                    let line = message_line(&message);
                    self.accept_client_message(message, line);
                }
            }
            // The hub answers what is no message.
            Ok(Incoming::Batch(_)) | Err(_) => self.enqueue(line, LineKind::Other),
        }
    }

    /// Batches exist in one revision only. The hub answers each message of one by itself.
    fn has_batches(&self) -> bool {
        self.revision.as_deref() == Some(Revision::R20250326.as_str())
    }

    fn accept_client_message(&mut self, message: Message, line: Bytes) {
        let kind = match message {
            Message::Request { id, method, params } => {
                self.remember_request(&id, method, params, &line);
                LineKind::Request(id)
            }
            Message::Notification { method, params } if method == "notifications/cancelled" => {
                let id = params.get("requestId").cloned().and_then(Id::from_json);
                if id.is_some_and(|id| self.cancel(&id)) {
                    return;
                }
                LineKind::Reply
            }
            Message::Notification { method, .. } => {
                if method == "notifications/initialized" {
                    // Part of the handshake, which another hub gets, too.
                    self.is_initialized = true;
                }
                LineKind::Other
            }
            Message::Response { .. } | Message::Error { .. } => LineKind::Reply,
        };
        self.enqueue(line, kind);
    }

    fn remember_request(&mut self, id: &Id, method: String, params: JsonObject, line: &Bytes) {
        let params = params.detached();
        match method.as_str() {
            "logging/setLevel" => self.log_level = Some(params),
            "resources/subscribe" => {
                let uri = params.text("uri").unwrap_or_default();
                self.subscriptions.retain(|(known, _)| *known != uri);
                self.subscriptions.push((uri, params));
            }
            "resources/unsubscribe" => {
                let uri = params.text("uri").unwrap_or_default();
                self.subscriptions.retain(|(known, _)| *known != uri);
            }
            "initialize" => {
                self.initialize = Some(params);
                (self.is_initialized, self.log_level) = (false, None);
                self.subscriptions.clear();
            }
            _ => {}
        }
        let is_read = READ_METHODS.contains(&method.as_str()) || method == LISTEN_METHOD;
        let line = is_read.then(|| line.clone());
        self.pending.push(PendingRequest { id: id.clone(), method, line, is_sent: false, repeats: 0 });
    }

    /// Forgets a cancelled request. Returns whether no hub has it.
    fn cancel(&mut self, id: &Id) -> bool {
        let Some(at) = self.pending.iter().position(|request| request.id == *id) else { return false };
        let request = self.pending.remove(at);
        let is_queued = |line: &OutgoingLine| line.kind == LineKind::Request(id.clone()) && line.written == 0;
        match self.queue.iter().position(is_queued).filter(|_| !request.is_sent) {
            Some(at) => self.queue.remove(at).is_some(),
            None => false,
        }
    }

    fn enqueue(&mut self, bytes: Bytes, kind: LineKind) {
        self.queue.push_back(OutgoingLine { bytes, written: 0, kind });
    }

    /// Takes a line of the hub. Returns it if it is for the client.
    pub fn accept_hub_line(&mut self, line: Bytes) -> Option<Bytes> {
        match Message::parse(line.clone(), Strictness::Upstream) {
            Ok(Message::Notification { method, params }) if method == DRAIN_NOTIFICATION => {
                let drain: DrainParams = params.to_json().to().unwrap_or_default();
                let is_from_hub = !drain.token.is_empty() && drain.token == self.drain_token;
                self.drain = self.drain.take().or(is_from_hub.then_some(drain));
                None
            }
            Ok(Message::Response { id, result }) => {
                if let Some(request) = self.take_pending(&id)
                    && request.method == "initialize"
                {
                    self.revision = result.text("protocolVersion");
                }
                (!is_own(&id)).then_some(line)
            }
            Ok(Message::Error { id: Some(id), .. }) => {
                self.take_pending(&id);
                (!is_own(&id)).then_some(line)
            }
            _ => Some(line),
        }
    }

    fn take_pending(&mut self, id: &Id) -> Option<PendingRequest> {
        let at = self.pending.iter().position(|request| request.id == *id)?;
        Some(self.pending.remove(at))
    }

    /// Whether a hub is needed now. A listening client alone does not need one: its stream is opened again with the next
    /// message.
    pub fn needs_hub(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Bytes for the hub, as far as it may have them.
    pub fn next_bytes(&self) -> Option<&[u8]> {
        let line = self.queue.get(self.next_line_at()?)?;
        line.bytes.get(line.written..)
    }

    /// While the hub waits for the session to leave, it gets only what ends its calls.
    fn next_line_at(&self) -> Option<usize> {
        if self.drain.is_none() || self.queue.front().is_some_and(|line| line.written > 0) {
            return (!self.queue.is_empty()).then_some(0);
        }
        self.queue.iter().position(|line| line.kind == LineKind::Reply)
    }

    /// Records that the hub has been sent this much of the bytes.
    pub fn mark_written(&mut self, count: usize) {
        let Some(at) = self.next_line_at() else { return };
        let Some(line) = self.queue.get_mut(at) else { return };
        line.written += count;
        if line.has_arrived()
            && let LineKind::Request(id) = &line.kind
            && let Some(request) = self.pending.iter_mut().find(|request| request.id == *id)
        {
            request.is_sent = true;
        }
        if line.written >= line.bytes.len() {
            self.queue.remove(at);
        }
    }

    /// Bytes that wait for a hub.
    pub fn queued_bytes(&self) -> usize {
        self.queue.iter().map(|line| line.bytes.len() - line.written).sum()
    }

    /// Stays with this hub although it asked the session to leave.
    pub fn ignore_drain(&mut self) {
        self.drain = None;
    }

    /// The hub's request to leave.
    pub fn drain(&self) -> Option<&DrainParams> {
        self.drain.as_ref()
    }

    /// What the hub asked for when it asked this session to leave, once the session has nothing left to wait for.
    pub fn ready_to_leave(&self) -> Option<&DrainParams> {
        let is_waiting =
            self.pending.iter().any(|request| request.is_sent && request.method != LISTEN_METHOD);
        let is_writing = self.queue.iter().any(|line| line.written > 0 || line.kind == LineKind::Reply);
        self.drain.as_ref().filter(|_| !is_waiting && !is_writing)
    }

    /// Lines that end the open streams of a hub that the session leaves.
    pub fn cancel_streams(&self) -> Vec<u8> {
        let open = self.pending.iter().filter(|request| request.is_sent && request.method == LISTEN_METHOD);
        let cancel = open.map(|request| {
            let params = JsonObject::new().with("requestId", request.id.json().clone());
            message_line(&Message::Notification { method: "notifications/cancelled".to_owned(), params })
        });
        cancel.collect::<Vec<Bytes>>().concat()
    }

    /// The hub is gone. Returns the errors of calls that it may have made, for the client.
    pub fn lose_hub(&mut self) -> Vec<Bytes> {
        self.drain = None;
        // A line that the hub has received only in part is sent to the next one.
        self.queue.retain(|line| !line.has_arrived() && !line.is_own());
        self.queue.iter_mut().for_each(|line| line.written = 0);
        let (mut errors, mut repeated) = (Vec::new(), Vec::new());
        for mut request in std::mem::take(&mut self.pending) {
            if !request.is_sent {
                self.pending.push(request);
                continue;
            }
            let is_listening = request.method == LISTEN_METHOD;
            match request.line.clone() {
                Some(line) if is_listening || request.repeats < MAX_REPEATS => {
                    request.is_sent = false;
                    if !is_listening {
                        request.repeats += 1;
                        repeated.push(OutgoingLine { bytes: line, written: 0, kind: LineKind::Request(request.id.clone()) });
                    }
                    self.pending.push(request);
                }
                Some(_) => errors.push(error_line(&request.id, "The hub stopped repeatedly during this request.", false)),
                None => errors.push(error_line(
                    &request.id,
                    "The hub stopped during this call. The call may have taken effect: check before you repeat it.",
                    true,
                )),
            }
        }
        self.enqueue_first(repeated);
        errors
    }

    fn enqueue_first(&mut self, lines: Vec<OutgoingLine>) {
        lines.into_iter().rev().for_each(|line| self.queue.push_front(line));
    }

    /// No hub can be reached. Returns the errors of everything that waits for one, for the client.
    pub fn give_up(&mut self, why: &str) -> Vec<Bytes> {
        self.queue.clear();
        let waiting = std::mem::take(&mut self.pending);
        let (listening, waiting): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(|request| request.method == LISTEN_METHOD && !request.is_sent);
        self.pending = listening;
        let message = format!("{why} The request was not carried out.");
        waiting.iter().map(|request| error_line(&request.id, &message, false)).collect()
    }

    /// A new hub serves the session: it gets the handshake first, and the streams of a listening client again.
    pub fn join_hub(&mut self, drain_token: String) {
        self.drain_token = drain_token;
        let mut lines = Vec::new();
        let initialize_is_pending = self.pending.iter().any(|request| request.method == "initialize");
        if let Some(params) = self.initialize.clone().filter(|_| !initialize_is_pending) {
            lines.push(self.own_request("initialize", params));
            if self.is_initialized {
                let method = "notifications/initialized".to_owned();
                let params = JsonObject::new();
                lines.push(OutgoingLine::own(&Message::Notification { method, params }));
            }
            if let Some(params) = self.log_level.clone() {
                lines.push(self.own_request("logging/setLevel", params));
            }
            for (_, params) in self.subscriptions.clone() {
                lines.push(self.own_request("resources/subscribe", params));
            }
        }
        let waiting =
            self.pending.iter().filter(|request| request.method == LISTEN_METHOD && !request.is_sent);
        let is_queued = |id: &Id| self.queue.iter().any(|line| line.kind == LineKind::Request(id.clone()));
        let listens = waiting.filter(|request| !is_queued(&request.id)).filter_map(|request| {
            let kind = LineKind::Request(request.id.clone());
            Some(OutgoingLine { bytes: request.line.clone()?, written: 0, kind })
        });
        lines.extend(listens);
        self.enqueue_first(lines);
    }

    fn own_request(&mut self, method: &str, params: JsonObject) -> OutgoingLine {
        self.next_own_id += 1;
        let id = Id::text(&format!("{OWN_ID_PREFIX}{}", self.next_own_id));
        OutgoingLine::own(&Message::Request { id, method: method.to_owned(), params })
    }
}

impl OutgoingLine {
    /// A line that only the hub that it is for needs.
    fn own(message: &Message) -> Self {
        let id = match message {
            Message::Request { id, .. } => id.clone(),
            _ => Id::text(OWN_ID_PREFIX),
        };
        Self { bytes: message_line(message), written: 0, kind: LineKind::Request(id) }
    }

    fn is_own(&self) -> bool {
        matches!(&self.kind, LineKind::Request(id) if is_own(id))
    }

    /// Whether the hub may have the whole message. It accepts a last line without an end.
    fn has_arrived(&self) -> bool {
        self.written + 1 >= self.bytes.len()
    }
}

fn is_own(id: &Id) -> bool {
    id.json().to_text().is_some_and(|text| text.starts_with(OWN_ID_PREFIX))
}

fn message_line(message: &Message) -> Bytes {
    let mut line = message.to_bytes().to_vec();
    line.push(b'\n');
    line.into()
}

/// Error of a request, as a line for the client.
fn error_line(id: &Id, message: &str, may_have_taken_effect: bool) -> Bytes {
    let data = JsonObject::new().with("mayHaveTakenEffect", may_have_taken_effect);
    let error = RpcError { code: code::INTERNAL, message: message.to_owned(), data: Some(data.to_json()) };
    message_line(&Message::Error { id: Some(id.clone()), error })
}

/// Error of a line that is too long, for the client.
pub fn too_long_line(max_bytes: usize) -> Bytes {
    let message = format!("A message is limited to {max_bytes} bytes. Send less at once.");
    message_line(&Message::Error {
        id: None,
        error: RpcError { code: code::INVALID_REQUEST, message, data: None },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn session(messages: &[Value]) -> ResumableSession {
        let mut session = ResumableSession::default();
        messages.iter().for_each(|message| session.accept_client_line(line(message)));
        session
    }

    fn line(message: &Value) -> Bytes {
        format!("{message}\n").into()
    }

    fn request(id: u64, method: &str) -> Value {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"uri": "a:b", "level": "debug"}})
    }

    fn initialized() -> ResumableSession {
        let mut session = session(&[
            request(1, "initialize"),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        ]);
        session.join_hub("t".to_owned());
        send_all(&mut session);
        let reply = json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-03-26"}});
        assert!(session.accept_hub_line(line(&reply)).is_some());
        session
    }

    /// Sends everything, and returns the methods.
    fn send_all(session: &mut ResumableSession) -> Vec<String> {
        let mut sent = Vec::new();
        while let Some(bytes) = session.next_bytes() {
            let message: Value = serde_json::from_slice(bytes).unwrap();
            sent.push(message["method"].as_str().unwrap_or("reply").to_owned());
            session.mark_written(bytes.len());
        }
        sent
    }

    fn errors(lines: &[Bytes]) -> Vec<(u64, bool)> {
        let parsed = lines.iter().map(|line| serde_json::from_slice::<Value>(line).unwrap());
        let read = |error: Value| {
            (error["id"].as_u64().unwrap(), error["error"]["data"]["mayHaveTakenEffect"].as_bool().unwrap())
        };
        parsed.map(read).collect()
    }

    #[test]
    fn the_next_hub_gets_the_handshake_and_what_the_client_asked_for_before() {
        let mut session = initialized();
        for (id, method) in [(2, "logging/setLevel"), (3, "resources/subscribe"), (4, "subscriptions/listen")]
        {
            session.accept_client_line(line(&request(id, method)));
        }
        send_all(&mut session);
        for id in [2, 3] {
            session.accept_hub_line(line(&json!({"jsonrpc": "2.0", "id": id, "result": {}})));
        }
        assert!(session.lose_hub().is_empty());
        assert!(!session.needs_hub(), "nothing to send");
        session.accept_client_line(line(&request(5, "tools/list")));
        assert!(session.needs_hub());
        session.join_hub("t".to_owned());
        let methods = send_all(&mut session);
        assert_eq!(
            methods,
            [
                "initialize",
                "notifications/initialized",
                "logging/setLevel",
                "resources/subscribe",
                "subscriptions/listen",
                "tools/list",
            ]
        );
        let own = json!({"jsonrpc": "2.0", "id": format!("{OWN_ID_PREFIX}1"), "result": {}});
        assert_eq!(session.accept_hub_line(line(&own)), None);
        let reply = json!({"jsonrpc": "2.0", "id": 5, "result": {}});
        assert_eq!(session.accept_hub_line(line(&reply)), Some(line(&reply)));
    }

    #[test]
    fn calls_are_never_repeated_and_reads_a_few_times() {
        let mut session = initialized();
        session.accept_client_line(line(&request(2, "tools/call")));
        session.accept_client_line(line(&request(3, "tools/list")));
        send_all(&mut session);
        session.accept_client_line(line(&request(4, "tools/call")));
        assert_eq!(errors(&session.lose_hub()), [(2, true)]);
        session.join_hub("t".to_owned());
        let methods = send_all(&mut session);
        assert_eq!(methods, ["initialize", "notifications/initialized", "tools/list", "tools/call"]);
        assert_eq!(errors(&session.lose_hub()), [(4, true)]);
        session.join_hub("t".to_owned());
        send_all(&mut session);
        assert_eq!(errors(&session.lose_hub()), [(3, false)]);
        assert!(!session.needs_hub());
    }

    #[test]
    fn another_hub_is_asked_for_skills_again() {
        let mut session = initialized();
        for (id, method) in [(2, "skills/list"), (3, "skills/get")] {
            session.accept_client_line(line(&request(id, method)));
        }
        send_all(&mut session);
        assert!(session.lose_hub().is_empty());
        session.join_hub("t".to_owned());
        let methods = send_all(&mut session);
        assert_eq!(methods, ["initialize", "notifications/initialized", "skills/list", "skills/get"]);
    }

    #[test]
    fn a_line_that_arrived_in_part_was_not_received() {
        let call = request(2, "tools/call");
        let whole = line(&call).len();
        for (written, is_received) in [(0, false), (5, false), (whole - 2, false), (whole - 1, true)] {
            let mut session = session(std::slice::from_ref(&call));
            session.mark_written(written);
            let lost = session.lose_hub();
            assert_eq!(!lost.is_empty(), is_received, "{written} of {whole}");
            assert_eq!(session.next_bytes().map(<[u8]>::len), (!is_received).then_some(whole));
        }
        let mut session = session(&[call, request(3, "tools/list")]);
        assert_eq!(errors(&session.give_up("No hub.")), [(2, false), (3, false)]);
        assert!(!session.needs_hub());
    }

    #[test]
    fn a_cancelled_request_is_not_made_or_not_waited_for() {
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}});
        let mut session = initialized();
        session.accept_client_line(line(&request(2, "tools/call")));
        session.accept_client_line(line(&cancel));
        assert!(!session.needs_hub(), "no hub has it");
        session.accept_client_line(line(&request(2, "tools/call")));
        send_all(&mut session);
        session.accept_client_line(line(&cancel));
        assert_eq!(send_all(&mut session), ["notifications/cancelled"]);
        assert!(session.lose_hub().is_empty());
    }

    #[test]
    fn a_session_leaves_when_its_requests_are_answered() {
        let drain =
            |token: &str| json!({"jsonrpc": "2.0", "method": DRAIN_NOTIFICATION, "params": {"token": token}});
        let mut session = initialized();
        session.accept_client_line(line(&request(2, "tools/call")));
        session.accept_client_line(line(&request(3, "subscriptions/listen")));
        send_all(&mut session);
        for token in ["", "x"] {
            assert_eq!(session.accept_hub_line(line(&drain(token))), None);
            assert_eq!(session.drain(), None, "a server cannot ask for it");
        }
        assert_eq!(session.accept_hub_line(line(&drain("t"))), None);
        session.accept_client_line(line(&request(4, "tools/call")));
        session.accept_client_line(line(&json!({"jsonrpc": "2.0", "id": 77, "result": {}})));
        assert_eq!(send_all(&mut session), ["reply"], "answers end calls; new calls wait");
        assert_eq!(session.ready_to_leave(), None);
        session.accept_hub_line(line(&json!({"jsonrpc": "2.0", "id": 2, "result": {}})));
        assert_eq!(session.ready_to_leave(), Some(&DrainParams { token: "t".to_owned(), successor: None }));
        assert!(String::from_utf8_lossy(&session.cancel_streams()).contains("notifications/cancelled"));
        assert!(session.lose_hub().is_empty());
        session.join_hub("t".to_owned());
        let methods = send_all(&mut session);
        assert_eq!(
            methods,
            ["initialize", "notifications/initialized", "subscriptions/listen", "tools/call"]
        );
    }

    #[test]
    fn a_batch_is_taken_apart_where_batches_exist() {
        let batch = json!([request(2, "tools/call"), request(3, "tools/list")]);
        let mut old = initialized();
        old.accept_client_line(line(&batch));
        assert_eq!(send_all(&mut old), ["tools/call", "tools/list"]);
        assert_eq!(errors(&old.lose_hub()), [(2, true)]);
        let mut new = ResumableSession::default();
        new.accept_client_line(line(&batch));
        assert_eq!(new.next_bytes(), Some(&line(&batch)[..]));
        new.accept_client_line(Bytes::from_static(b"no JSON\n"));
        assert!(new.pending.is_empty());
    }
}
