//! Calls of `tools_call`, which stand for a call of another tool.

use crate::catalogue::item::Entry;
use crate::catalogue::profile_view::{LIST_HINT, View};
use crate::find::tool_signatures::{entry_schema, entry_signature, is_plain_name, quoted_name, shown_name};
use crate::find::tools_call::{CALL_TOOL, WrappedCall, is_call_wrapper};
use crate::hub::Hub;
use crate::pipeline::call_request::Request;
use crate::pipeline::policy::{PolicyEngine, is_visible};
use octo_model::{ItemKind, Json, Kind, Method, Operation, ToolError, nearest};

/// What to do about an unknown name.
const FIND_HINT: &str = "Find tools with tools_find.";
/// Tools of one name that are named.
const MAX_NAMED: usize = 10;
/// Characters of an unknown name that are shown.
const MAX_NAME_CHARS: usize = 80;
/// A longer schema is not shown in an error; the signature is.
const MAX_SCHEMA_BYTES: usize = 4_000;

/// An error about arguments with the schema of the tool, which is not listed to the caller.
pub fn with_schema(error: ToolError, target: &Entry) -> ToolError {
    if error.kind != Kind::Invalid {
        return error;
    }
    let shown = match entry_schema(target, MAX_SCHEMA_BYTES) {
        Some(schema) => format!("Its input schema: {}", schema.as_str()),
        None => format!("Its signature: {}", entry_signature(target, &shown_name(&target.listed_name))),
    };
    let hint = match &error.hint {
        Some(hint) => format!("{hint} {shown}"),
        None => shown,
    };
    error.hint(hint)
}

/// The error of a tool that the model named: an answer to it, not one of the protocol.
fn not_found(error: ToolError, close: Option<&str>) -> ToolError {
    let known = error.hint.filter(|hint| hint != LIST_HINT).map(|hint| hint.to_string());
    let close = || close.map(|close| format!("Did you mean `{close}`?"));
    let hint = known.or_else(close).unwrap_or_else(|| FIND_HINT.to_owned());
    ToolError::new(error.kind, error.message).hint(hint)
}

fn is_for_caller(policy: &dyn PolicyEngine, request: &Request, entry: &Entry) -> bool {
    entry.item.app.is_for_model && is_visible(policy, &request.profile, &request.caller, entry)
}

/// The request with a tool in place of `tools_call`.
fn inner_request(outer: &Request, name: &str, arguments: &Json) -> Request {
    let mut params = outer.op.params.clone();
    params.set("name", name).set("arguments", arguments.clone());
    Request { op: Operation { method: Method::CallTool, name: name.to_owned(), params }, ..outer.clone() }
}

impl Hub {
    /// The entry that the caller means by a name which is none: a name in quotes, that of a tool on its server, alone, or
    /// with the server as models write it.
    fn find_otherwise(&self, request: &Request, name: &str) -> Result<Option<Entry>, ToolError> {
        let (view, rules) = (self.view(&request.profile)?, self.rules());
        let shows = |entry: &Entry| is_for_caller(&*rules.policy, request, entry);
        let quoted = quoted_name(name);
        let name = quoted.as_deref().unwrap_or(name);
        let known = view.by_name(ItemKind::Tool, name).filter(|entry| quoted.is_some() && shows(entry));
        if known.is_some() {
            return Ok(known.cloned());
        }
        let split = name.split_once(':').or_else(|| name.split_once("__"));
        if let Some((server, tool)) = split {
            // A tool that the profile renames has no name with that of its server.
            let alias = view.by_name(ItemKind::Tool, &format!("{server}:{tool}"));
            let known = alias.or_else(|| view.by_name(ItemKind::Tool, tool));
            let known = known.filter(|entry| entry.source_name() == server && shows(entry));
            if known.is_some() {
                return Ok(known.cloned());
            }
        }
        let tools = view.list(ItemKind::Tool).iter();
        let named: Vec<&Entry> = tools.filter(|entry| entry.item.key == name && shows(entry)).collect();
        match named.as_slice() {
            [] => Ok(None),
            [entry] => Ok(Some((*entry).clone())),
            several => {
                let names = several
                    .iter()
                    .take(MAX_NAMED)
                    .map(|entry| format!("`{}`", shown_name(&entry.listed_name)));
                let names = names.collect::<Vec<_>>().join(", ");
                let name: String = name.chars().take(MAX_NAME_CHARS).collect();
                Err(ToolError::invalid(format!("Several servers have a tool `{name}`."))
                    .hint(format!("Call one of {names}.")))
            }
        }
    }

    /// The name of a tool on its server that is much like this one.
    fn close_key<'a>(&self, request: &Request, view: &'a View, name: &str) -> Option<&'a str> {
        let rules = self.rules();
        let shows = |entry: &&Entry| is_for_caller(&*rules.policy, request, entry);
        let shown = view.list(ItemKind::Tool).iter().filter(shows);
        nearest(name, shown.map(|entry| entry.item.key.as_str()).filter(|key| is_plain_name(key)))
    }

    /// What is recorded of a call of `tools_call`, before the tool is looked for: the call of that tool. `None` for other
    /// calls, and if it names none.
    pub(crate) fn recorded_request(&self, request: &Request) -> Option<Request> {
        if request.op.method != Method::CallTool || !request.op.name.ends_with(CALL_TOOL) {
            return None;
        }
        let entry = self.view(&request.profile).ok()?.find(&request.op)?;
        let call = WrappedCall::parse(request.op.params.get("arguments")).ok()?;
        is_call_wrapper(&entry).then(|| inner_request(request, &call.name, &call.arguments))
    }

    /// The call that names a tool, with the name by which it is listed.
    async fn find_named(&self, outer: &Request, call: &WrappedCall) -> Result<(Request, Entry), ToolError> {
        let otherwise = || -> Result<Option<(Request, Entry)>, ToolError> {
            let entry = self.find_otherwise(outer, &call.name)?;
            Ok(entry.map(|entry| (inner_request(outer, &entry.listed_name, &call.arguments), entry)))
        };
        let request = inner_request(outer, &call.name, &call.arguments);
        // Another name of a tool that is there does not wait for sources that are still starting.
        if self.view(&outer.profile)?.find(&request.op).is_none()
            && let Some(found) = otherwise()?
        {
            return Ok(found);
        }
        match self.find(&request).await {
            Ok(entry) => Ok((request, entry)),
            Err(error) => match otherwise()? {
                Some(found) => Ok(found),
                None => Err(self.wrapped_error(error, &request)),
            },
        }
    }

    /// An unknown tool is told as an answer to the model that named it.
    pub(crate) fn wrapped_error(&self, error: ToolError, request: &Request) -> ToolError {
        match self.view(&request.profile) {
            Ok(view) if error.kind == Kind::NotFound => {
                not_found(error, self.close_key(request, &view, &request.op.name))
            }
            _ => error,
        }
    }

    /// The call that a call of `tools_call` stands for, with everything else as it was.
    pub(crate) async fn unwrap_call(&self, outer: &Request) -> Result<(Request, Entry), ToolError> {
        let call = WrappedCall::parse(outer.op.params.get("arguments"))?;
        let (request, entry) = self.find_named(outer, &call).await?;
        if !entry.item.app.is_for_model {
            let error =
                ToolError::not_found(format!("Tool not found: `{}`.", shown_name(&entry.listed_name)));
            return Err(not_found(error, None));
        }
        if is_call_wrapper(&entry) {
            return Err(ToolError::invalid(format!("{CALL_TOOL} cannot call itself."))
                .hint("Give the name of the tool itself."));
        }
        Ok((request, entry))
    }
}
