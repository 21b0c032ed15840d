//! Nested calls: a running call uses other tools on behalf of its caller.

use crate::{BoxFuture, CallContext, CallHeader, CallableTool, Definition, FoundTools, ToolSearch};
use octo_model::{CallId, JsonObject, Operation, Remedy, ServerRequest, ToolError};
use octo_ports::Outcome;
use std::time::Duration;

/// The hub, as a call that it runs may use it: for the same caller, profile and frontend.
pub trait NestedCalls: Send + Sync {
    /// Makes a call inside the call `outer`, with its peer and cancellation. The reply is not truncated.
    fn call<'a>(
        &'a self,
        outer: &'a CallContext,
        op: Operation,
        timeout: Option<Duration>,
    ) -> BoxFuture<'a, NestedOutcome>;

    /// Returns a tool as the caller of `outer` may call it.
    fn tool(&self, outer: &CallHeader, name: &str) -> Result<Definition, ToolError>;

    /// Returns the tools that the caller of `outer` may call and that `filter` accepts: up to `max_all` tools, all of
    /// them.
    fn callable_tools(
        &self,
        outer: &CallHeader,
        max_all: usize,
        filter: &dyn Fn(&CallableTool) -> bool,
    ) -> Result<Vec<CallableTool>, ToolError>;

    /// Searches the tools that the caller of `outer` may call.
    fn find_tools<'a>(
        &'a self,
        outer: &'a CallContext,
        search: ToolSearch,
    ) -> BoxFuture<'a, Result<FoundTools, ToolError>>;

    /// Decides whether a server may ask the client of `outer`, and records the question.
    fn open_question<'a>(
        &'a self,
        outer: &'a CallHeader,
        question: ServerQuestion<'a>,
    ) -> BoxFuture<'a, Result<Box<dyn QuestionRecord>, ToolError>>;

    /// Writes the sentence about a remedy.
    fn remedy_text(&self, remedy: &Remedy) -> String;

    /// Waits for sources to list, for a short time after the start of the hub.
    fn wait_for_startup_listing<'a>(&'a self, outer: &'a CallHeader) -> BoxFuture<'a, ()>;

    /// Waits for sources that are still starting.
    fn wait_until_listed<'a>(&'a self, outer: &'a CallHeader, at_most: Duration) -> BoxFuture<'a, ()>;
}

/// A question of a server to the client of a call.
pub struct ServerQuestion<'a> {
    pub server: &'a str,
    pub request: ServerRequest,
    /// As the server wrote them.
    pub params: &'a JsonObject,
    /// Why it is not asked. The question is recorded all the same.
    pub refusal: Option<ToolError>,
}

/// The record of a question that is asked.
pub trait QuestionRecord: Send {
    /// Records how it ended.
    fn close(self: Box<Self>, outcome: Outcome);
}

/// Result of a nested call.
pub struct NestedOutcome {
    pub id: CallId,
    pub outcome: Result<JsonObject, ToolError>,
}
