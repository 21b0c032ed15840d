//! Nested calls: the same pipeline, one level deeper.

use crate::hub::Hub;
use crate::hub::call_pipeline::CallOutcome;
use crate::pipeline::call_request::Request;
use crate::pipeline::policy::check_visible;
use octo_model::{BoxFuture, CallId, Json, Operation, Remedy, ToolError};
use octo_toolkit::{CallContext, CallHeader, Definition, NestedCalls, NestedOutcome};
use std::sync::Arc;
use std::time::Duration;

impl NestedCalls for Hub {
    fn call<'a>(
        &'a self,
        outer: &'a CallContext,
        op: Operation,
        timeout: Option<Duration>,
    ) -> BoxFuture<'a, NestedOutcome> {
        Box::pin(async move {
            let request = Request {
                op,
                caller: Arc::clone(&outer.caller),
                frontend: outer.frontend,
                profile: outer.profile.clone(),
                peer: Arc::clone(&outer.peer),
                cancel: outer.cancel.child_token(),
                timeout,
                trace: Some(outer.trace.clone().unwrap_or_else(|| trace_parent(outer.id))),
                depth: outer.depth.saturating_add(1),
                from_app: false,
            };
            let CallOutcome { id, outcome, .. } = self.call(request).await;
            let outcome = match outcome {
                Ok(result) => self.untruncated(&outer.caller, result).await,
                Err(error) => Err(error),
            };
            NestedOutcome { id, outcome }
        })
    }

    fn tool(&self, outer: &CallHeader, name: &str) -> Result<Definition, ToolError> {
        let view = self.view(&outer.profile)?;
        let op = Operation::tool(name, Json::empty_object());
        let entry =
            view.find(&op).ok_or_else(|| self.not_found_error(&outer.profile, &view, &outer.caller, &op))?;
        check_visible(&*self.rules().policy, &outer.profile, &outer.caller, &entry)?;
        Ok(Definition {
            key: entry.listed_name.to_string(),
            members: entry.definition(),
            effect: entry.effect(),
            effect_origin: entry.item.effect_origin,
        })
    }

    fn remedy_text(&self, remedy: &Remedy) -> String {
        (self.remedy_text)(remedy)
    }

    fn wait_until_listed<'a>(&'a self, outer: &'a CallHeader, at_most: Duration) -> BoxFuture<'a, ()> {
        Box::pin(self.wait_until_listed(&outer.profile, at_most))
    }
}

/// Without a client trace, nested calls get a trace with the id of the outer call.
fn trace_parent(id: CallId) -> String {
    let id = id.to_string();
    format!("00-{id}-{}-00", id.get(16..).unwrap_or_default())
}
