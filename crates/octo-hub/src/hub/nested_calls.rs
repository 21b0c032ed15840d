//! Nested calls: the same pipeline, one level deeper.

use crate::catalogue::item::Entry;
use crate::code::run_code::is_program_tool;
use crate::find::tools_call::is_find_or_call_tool;
use crate::hub::Hub;
use crate::hub::call_pipeline::CallOutcome;
use crate::pipeline::call_request::Request;
use crate::pipeline::policy::{check_visible, is_visible};
use octo_model::{BoxFuture, CallId, ItemKind, Json, Operation, Remedy, ToolError};
use octo_toolkit::{
    CallContext, CallHeader, CallableTool, Definition, FoundTools, NestedCalls, NestedOutcome,
    QuestionRecord, ServerQuestion, ToolSearch,
};
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
        if let Err(denial) = check_visible(&*self.rules().policy, &outer.profile, &outer.caller, &entry) {
            return Err(match denial.has_hint || outer.caller.is_admin() {
                true => denial.into(),
                false => self.not_found_error(&outer.profile, &view, &outer.caller, &op),
            });
        }
        Ok(Definition {
            key: entry.listed_name.to_string(),
            members: entry.definition(),
            effect: entry.effect(),
            effect_origin: entry.item.effect_origin,
        })
    }

    fn callable_tools(
        &self,
        outer: &CallHeader,
        max_all: usize,
        filter: &dyn Fn(&CallableTool) -> bool,
    ) -> Result<Vec<CallableTool>, ToolError> {
        let view = self.view(&outer.profile)?;
        let policy = Arc::clone(&self.rules().policy);
        let entries = view.list(ItemKind::Tool);
        let shows = |entry: &Entry| {
            !(is_find_or_call_tool(entry) || is_program_tool(entry))
                && entry.item.app.is_for_model
                && is_visible(&*policy, &outer.profile, &outer.caller, entry)
        };
        let is_small = entries.len() <= max_all;
        let tools = entries.iter().map(|entry| (entry, callable_tool(entry)));
        let wanted = tools.filter(|(entry, tool)| (is_small || filter(tool)) && shows(entry));
        Ok(wanted.map(|(_, tool)| tool).collect())
    }

    fn find_tools<'a>(
        &'a self,
        outer: &'a CallContext,
        search: ToolSearch,
    ) -> BoxFuture<'a, Result<FoundTools, ToolError>> {
        Box::pin(self.search_tools(outer, search))
    }

    fn open_question<'a>(
        &'a self,
        outer: &'a CallHeader,
        question: ServerQuestion<'a>,
    ) -> BoxFuture<'a, Result<Box<dyn QuestionRecord>, ToolError>> {
        Box::pin(self.open_question_record(outer, question))
    }

    fn remedy_text(&self, remedy: &Remedy) -> String {
        (self.remedy_text)(remedy)
    }

    fn wait_for_startup_listing<'a>(&'a self, outer: &'a CallHeader) -> BoxFuture<'a, ()> {
        Box::pin(self.wait_for_startup_listing(&outer.profile))
    }

    fn wait_until_listed<'a>(&'a self, outer: &'a CallHeader, at_most: Duration) -> BoxFuture<'a, ()> {
        Box::pin(self.wait_until_listed(&outer.profile, at_most))
    }
}

fn callable_tool(entry: &Entry) -> CallableTool {
    let name = entry.listed_name.to_string();
    let has_own_name = entry.tool_override.is_some() || entry.item.source.is_native();
    if has_own_name {
        return CallableTool { tool: name.clone(), server: None, name };
    }
    CallableTool { name, server: Some(entry.source_name().to_owned()), tool: entry.item.key.clone() }
}

/// Without a client trace, nested calls get a trace with the id of the outer call.
pub(crate) fn trace_parent(id: CallId) -> String {
    let id = id.to_string();
    format!("00-{id}-{}-00", id.get(16..).unwrap_or_default())
}
