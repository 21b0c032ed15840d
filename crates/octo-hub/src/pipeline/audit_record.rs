//! Audit record of one call: opened before anything runs, closed on drop.

use crate::catalogue::item::Entry;
use crate::pipeline::call_request::Request;
use crate::pipeline::coerce::Coercions;
use crate::pipeline::telemetry::Excerpts;
use octo_model::{CallId, JsonObject, Kind, Operation, ToolError};
use octo_ports::{AuditLog, CallEnded, CallStarted, Outcome};
use std::sync::Arc;
use std::time::Instant;

pub struct AuditRecord {
    pub id: CallId,
    audit_log: Arc<dyn AuditLog>,
    closing: Option<CallEnded>,
    started_at: Instant,
    pub entry: Option<Entry>,
    /// Whether the caller is told that the item does not exist, although a rule denied it.
    pub is_hidden: bool,
    /// The tool that named the item, if the caller did not do so itself.
    pub wrapper: Option<Entry>,
}

impl AuditRecord {
    /// The item that the caller learns of.
    pub fn shown_entry(&self) -> Option<&Entry> {
        if self.is_hidden { self.wrapper.as_ref() } else { self.entry.as_ref() }
    }
}

impl AuditRecord {
    /// Fails if the record cannot be written; the call is then refused.
    pub async fn open(
        audit_log: &Arc<dyn AuditLog>,
        id: CallId,
        request: &Request,
        excerpts: Option<&Arc<dyn Excerpts>>,
    ) -> Result<Self, ToolError> {
        let begun = Instant::now();
        let shown = excerpts
            .zip(request.op.params.get("arguments"))
            .and_then(|(excerpts, arguments)| excerpts.for_audit(arguments));
        let opened = CallStarted {
            id,
            principal: request.caller.principal.clone(),
            frontend: request.frontend,
            profile: request.profile.clone(),
            method: request.op.method.into(),
            name: request.op.name.clone(),
            arguments: audit_log.fingerprint(arguments(&request.op)),
            shown,
            trace: request.trace.clone(),
        };
        Self::opened(audit_log, opened, begun).await
    }

    /// The record of a question of a server.
    pub async fn of_question(audit_log: &Arc<dyn AuditLog>, opened: CallStarted) -> Result<Self, ToolError> {
        Self::opened(audit_log, opened, Instant::now()).await
    }

    async fn opened(
        audit_log: &Arc<dyn AuditLog>,
        opened: CallStarted,
        begun: Instant,
    ) -> Result<Self, ToolError> {
        let id = opened.id;
        audit_log.open(opened).await?;
        let closing = CallEnded {
            id,
            target: None,
            rule: None,
            outcome: Outcome::Dropped,
            micros: 0,
            bytes: 0,
            result_handle: None,
            arguments: None,
        };
        Ok(Self {
            id,
            audit_log: Arc::clone(audit_log),
            closing: Some(closing),
            started_at: begun,
            entry: None,
            is_hidden: false,
            wrapper: None,
        })
    }

    /// Size of the reply.
    pub fn bytes(&self) -> u64 {
        self.closing.as_ref().map_or(0, |closing| closing.bytes)
    }

    pub fn set_entry(&mut self, entry: &Entry) {
        self.entry = Some(entry.clone());
        if let Some(closing) = &mut self.closing {
            closing.target = Some(entry.item.target());
        }
    }

    pub fn set_rule(&mut self, rule: &str) {
        if let Some(closing) = &mut self.closing {
            closing.rule = Some(rule.to_owned());
        }
    }

    /// Records the arguments that are run, if they differ from those received.
    pub fn set_coerced_arguments(&mut self, changes: &Coercions, op: &Operation) {
        if let Some(closing) = self.closing.as_mut().filter(|_| !changes.is_empty()) {
            closing.arguments = Some(self.audit_log.fingerprint(arguments(op)));
        }
    }

    pub fn set_result_handle(&mut self, handle: &str) {
        if let Some(closing) = &mut self.closing {
            closing.result_handle = Some(handle.to_owned());
        }
    }

    /// Sets the outcome of the call. Dropping the record writes it.
    pub fn set_outcome(&mut self, outcome: &Result<JsonObject, ToolError>) -> Outcome {
        let word = match outcome {
            Ok(result) if result.text("resultType").as_deref() == Some("input_required") => {
                Outcome::InputRequired
            }
            Ok(result) if result.is_true("isError") => Outcome::Failed,
            Ok(_) => Outcome::Ok,
            Err(_) if self.is_hidden => Outcome::Error(Kind::Denied),
            Err(error) => Outcome::Error(error.kind),
        };
        if let Some(closing) = &mut self.closing {
            closing.outcome = word;
            closing.bytes = outcome
                .as_ref()
                .map_or(0, |result| result.iter().map(|(_, value)| value.bytes().len() as u64).sum());
        }
        word
    }

    /// Sets how a question ended.
    pub fn set_question_outcome(&mut self, outcome: Outcome) {
        if let Some(closing) = &mut self.closing {
            closing.outcome = outcome;
        }
    }
}

fn arguments(op: &Operation) -> &[u8] {
    op.params.get("arguments").map(|json| json.as_str().as_bytes()).unwrap_or_default()
}

impl Drop for AuditRecord {
    fn drop(&mut self) {
        if let Some(mut closing) = self.closing.take() {
            closing.micros = u64::try_from(self.started_at.elapsed().as_micros()).unwrap_or(u64::MAX);
            self.audit_log.close(closing);
        }
    }
}
