//! Questions of a server to the client of a call: which ones it may ask, in whose name, and their records.

use super::sanitize;
use super::server_voice::{ServerVoice, has_plain_form, is_relayed};
use octo_model::{JsonObject, Kind, RpcError, ServerRequest, ToolError};
use octo_ports::Outcome;
use octo_toolkit::{AskError, BoxFuture, CallContext, Peer, ServerQuestion};
use std::collections::BTreeSet;
use std::sync::{Arc, Once};

/// JSON-RPC code of a refusal: invalid request.
const REFUSED_CODE: i64 = -32600;

/// Decides whether a server may send a person to a URL.
pub type UrlCheck = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// What a server may ask.
#[derive(Clone)]
pub struct QuestionRules {
    pub kinds: BTreeSet<ServerRequest>,
    pub may_open: UrlCheck,
    /// The log says once how to permit what was refused.
    refused_kind: Arc<Once>,
    refused_url: Arc<Once>,
}

impl QuestionRules {
    pub fn new(kinds: BTreeSet<ServerRequest>, may_open: UrlCheck) -> Self {
        Self { kinds, may_open, refused_kind: Arc::new(Once::new()), refused_url: Arc::new(Once::new()) }
    }
}

impl Default for QuestionRules {
    fn default() -> Self {
        let kinds = [ServerRequest::Elicitation, ServerRequest::Roots].into();
        Self::new(kinds, Arc::new(|_| false))
    }
}

/// The client of a call, as its server reaches it.
pub struct ServerPeer {
    pub server: Arc<str>,
    pub rules: QuestionRules,
    /// The call, with the peer of the hub.
    pub cx: CallContext,
}

impl ServerPeer {
    fn voice(&self) -> ServerVoice<'_> {
        ServerVoice(&self.server)
    }

    /// The question as the client gets it.
    fn prepare(&self, request: ServerRequest, params: &JsonObject) -> Result<JsonObject, ToolError> {
        let server = &self.server;
        if !self.rules.kinds.contains(&request) {
            let kind = request.kind();
            self.rules.refused_kind.call_once(|| {
                tracing::warn!(target: "trust", %server, kind, "question refused: add its kind to `questions` of the server to permit it");
            });
            return Err(ToolError::denied(format!("The settings do not let `{server}` use {kind}."))
                .hint(format!("The operator can add {kind} to `servers.{server}.questions`.")));
        }
        let params = sanitize::sanitize_params(params)
            .ok_or_else(|| ToolError::invalid("The question has hidden text in member names."))?;
        let params = sanitize::strip_hub_meta(params, &[]);
        Ok(match request {
            ServerRequest::Elicitation => {
                if params.text("mode").as_deref() == Some("url") || params.get("url").is_some() {
                    self.check_url(&params.text("url").unwrap_or_default())?;
                }
                if !has_plain_form(&params) {
                    return Err(ToolError::invalid(
                        "The form has line breaks or backticks in names or values of its fields.",
                    ));
                }
                self.voice().elicitation(params)
            }
            ServerRequest::Sampling => self.voice().sampling(params),
            ServerRequest::Roots => params,
        })
    }

    fn check_url(&self, url: &str) -> Result<(), ToolError> {
        if (self.rules.may_open)(url) {
            return Ok(());
        }
        let server = &self.server;
        self.rules.refused_url.call_once(|| {
            tracing::warn!(target: "trust", %server, "question refused: its URL is not on the site of the server; `question_hosts` of the server permits others");
        });
        Err(ToolError::denied(format!("`{server}` may only open URLs of its own site."))
            .hint(format!("The operator can add hosts to `servers.{server}.question_hosts`.")))
    }

    /// Asks the client, unless the settings or the policy refuse that. Every question is recorded.
    async fn ask_client(&self, method: &str, params: JsonObject) -> Result<JsonObject, AskError> {
        let request = ServerRequest::parse(method).ok_or(AskError::Unable)?;
        let (question, record) = self.open(request, &params).await.map_err(|error| refused(&error))?;
        let answer = self.cx.peer.ask(method, question).await;
        record.close(match &answer {
            Ok(answer) if is_declined(answer) => Outcome::Failed,
            Ok(_) => Outcome::Ok,
            Err(AskError::Unable) => Outcome::Error(Kind::Unavailable),
            Err(AskError::Refused(_)) => Outcome::Failed,
            Err(AskError::Gone) => Outcome::Error(Kind::Cancelled),
        });
        answer
    }

    async fn open(
        &self,
        request: ServerRequest,
        params: &JsonObject,
    ) -> Result<(JsonObject, Box<dyn octo_toolkit::QuestionRecord>), ToolError> {
        let prepared = self.prepare(request, params);
        let refusal = prepared.as_ref().err().cloned();
        let question = ServerQuestion { server: &self.server, request, params, refusal };
        let record = self.cx.nested_calls()?.open_question(self.cx.header(), question).await?;
        Ok((prepared?, record))
    }

    /// The result of a modern server that ends a call with questions, as the client gets it.
    pub async fn input_required(&self, result: JsonObject) -> Result<JsonObject, ToolError> {
        let mut requests = JsonObject::new();
        for (key, entry) in result.object("inputRequests").iter() {
            let members = entry.members().unwrap_or_default();
            let method = members.text("method").unwrap_or_default();
            let Some(request) = ServerRequest::parse(&method) else {
                requests.set(key, entry.clone());
                continue;
            };
            let (question, record) = self.open(request, &members.object("params")).await?;
            record.close(Outcome::InputRequired);
            requests.set(key, members.with("params", question));
        }
        Ok(if requests.is_empty() { result } else { result.with("inputRequests", requests) })
    }
}

fn is_declined(answer: &JsonObject) -> bool {
    answer.text("action").is_some_and(|action| action != "accept")
}

fn refused(error: &ToolError) -> AskError {
    AskError::Refused(RpcError { code: REFUSED_CODE, message: error.text(), data: None })
}

impl Peer for ServerPeer {
    fn capabilities(&self) -> &JsonObject {
        self.cx.peer.capabilities()
    }

    /// Messages that cannot be sanitized are dropped, and those that clients do not know.
    fn notify(&self, method: &str, params: JsonObject) {
        if !is_relayed(method) {
            tracing::debug!(target: "trust", server = %self.server, method, "notification dropped: unknown");
            return;
        }
        if let Some(params) = sanitize::sanitize_params(&params) {
            self.cx.peer.notify(method, self.voice().notification(method, params));
        }
    }

    fn ask<'a>(&'a self, method: &'a str, params: JsonObject) -> BoxFuture<'a, Result<JsonObject, AskError>> {
        Box::pin(self.ask_client(method, params))
    }

    fn task_started(&self) {
        self.cx.peer.task_started();
    }

    fn key(&self) -> u64 {
        self.cx.peer.key()
    }
}
