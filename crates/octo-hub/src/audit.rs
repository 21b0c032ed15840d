//! The record of one call: opened before anything runs, closed on drop.

use crate::call::Request;
use crate::coerce::Changes;
use crate::item::Item;
use crate::ports::{Closing, Ledger, Opening, Outcome};
use crate::telemetry::Excerpts;
use octo_model::{CallId, Members, Op, ToolError};
use std::sync::Arc;
use std::time::Instant;

pub struct Record {
    ledger: Arc<dyn Ledger>,
    closing: Option<Closing>,
    begun: Instant,
    pub item: Option<Arc<Item>>,
}

impl Record {
    /// Fails when the record cannot be written; the call is then refused.
    pub async fn open(
        ledger: &Arc<dyn Ledger>,
        id: CallId,
        request: &Request,
        excerpts: Option<&Arc<dyn Excerpts>>,
    ) -> Result<Self, ToolError> {
        let begun = Instant::now();
        let shown = excerpts
            .zip(request.op.params.get("arguments"))
            .and_then(|(excerpts, arguments)| excerpts.for_audit(arguments));
        ledger
            .open(Opening {
                id,
                principal: request.caller.principal.clone(),
                face: request.face,
                profile: request.profile.clone(),
                method: request.op.method,
                name: request.op.name.clone(),
                arguments: ledger.fingerprint(arguments(&request.op)),
                shown,
                trace: request.trace.clone(),
            })
            .await?;
        let closing = Closing {
            id,
            target: None,
            rule: None,
            outcome: Outcome::Dropped,
            micros: 0,
            bytes: 0,
            spill: None,
            arguments: None,
        };
        Ok(Self { ledger: Arc::clone(ledger), closing: Some(closing), begun, item: None })
    }

    /// How long the answer is.
    pub fn bytes(&self) -> u64 {
        self.closing.as_ref().map_or(0, |closing| closing.bytes)
    }

    pub fn found(&mut self, item: &Arc<Item>) {
        self.item = Some(Arc::clone(item));
        if let Some(closing) = &mut self.closing {
            closing.target = Some(item.target());
        }
    }

    pub fn rule(&mut self, rule: &str) {
        if let Some(closing) = &mut self.closing {
            closing.rule = Some(rule.to_owned());
        }
    }

    /// Records the arguments that run, when they are not those that came.
    pub fn coerced(&mut self, changes: &Changes, op: &Op) {
        if let Some(closing) = self.closing.as_mut().filter(|_| !changes.is_empty()) {
            closing.arguments = Some(self.ledger.fingerprint(arguments(op)));
        }
    }

    pub fn spill(&mut self, handle: &str) {
        if let Some(closing) = &mut self.closing {
            closing.spill = Some(handle.to_owned());
        }
    }

    /// Says how the call ended; dropping the record writes it.
    pub fn ended(&mut self, outcome: &Result<Members, ToolError>) -> Outcome {
        let word = match outcome {
            Ok(result) if result.text("resultType").as_deref() == Some("input_required") => {
                Outcome::InputRequired
            }
            Ok(result) if result.is_true("isError") => Outcome::Failed,
            Ok(_) => Outcome::Ok,
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
}

fn arguments(op: &Op) -> &[u8] {
    op.params.get("arguments").map(|json| json.as_str().as_bytes()).unwrap_or_default()
}

impl Drop for Record {
    fn drop(&mut self) {
        if let Some(mut closing) = self.closing.take() {
            closing.micros = u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX);
            self.ledger.close(closing);
        }
    }
}
