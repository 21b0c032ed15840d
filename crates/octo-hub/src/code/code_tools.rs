//! The tools that a program can call, and its calls of them.

use super::tool_value::{call_error, tool_value};
use octo_code::{CallError, ToolBinding, ToolCalls, ToolDeclaration, declarations};
use octo_model::{Json, Kind, Operation, ToolError};
use octo_toolkit::{CallContext, CallHeader, CallableTool, Definition, NestedCalls};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// With more tools than this, a program can call those that it names.
const MAX_BOUND_TOOLS: usize = 1_000;
/// Tools that a program can call.
const MAX_NAMED_TOOLS: usize = 10_000;
/// Tools with longer names cannot be called by programs.
const MAX_NAME_BYTES: usize = 256;
/// Tools that are declared in one reply.
const MAX_DECLARED_TOOLS: usize = 200;
/// Characters of an unknown name that are shown.
const MAX_NAME_CHARS: usize = 80;
/// Bytes of the declaration of a tool in an error about its arguments.
const MAX_ERROR_DECLARATION_BYTES: usize = 2_000;

/// The tools of a caller, for one program.
pub struct CodeTools<'a> {
    cx: &'a CallContext,
    hub: Arc<dyn NestedCalls>,
    calls: AtomicU64,
}

impl<'a> CodeTools<'a> {
    pub fn new(cx: &'a CallContext) -> Result<Self, ToolError> {
        Ok(Self { cx, hub: cx.nested_calls()?, calls: AtomicU64::new(0) })
    }

    /// The tools that a program can call.
    pub fn bindings(&self, source: &str) -> Result<Vec<ToolBinding>, ToolError> {
        let words: HashSet<&str> = words(source).collect();
        let is_named = |tool: &CallableTool| are_known(&tool.tool, &words) || are_known(&tool.name, &words);
        let all = self.hub.callable_tools(self.cx, MAX_BOUND_TOOLS, &is_named)?;
        Ok(all.into_iter().filter(has_short_name).take(MAX_NAMED_TOOLS).map(binding).collect())
    }

    /// An error of a call as the program sees it. One about arguments declares the tool.
    fn error(&self, name: &str, error: &ToolError) -> CallError {
        let mut seen = call_error(self.cx, error);
        let known = || {
            let tools = self.hub.callable_tools(self.cx, 0, &|tool| tool.name == name).ok()?;
            let tool = tools.into_iter().next()?;
            let definition = self.hub.tool(self.cx, &tool.name).ok()?;
            Some(declarations_of(&[(binding(tool), definition)], MAX_ERROR_DECLARATION_BYTES))
        };
        if error.kind == Kind::Invalid
            && let Some(declaration) = known()
        {
            seen.message = format!("{}\n{}", seen.message, declaration.trim_end());
        }
        seen
    }
}

impl ToolCalls for CodeTools<'_> {
    async fn call(&self, name: &str, arguments: Json) -> Result<Json, CallError> {
        let operation = Operation::tool(name, arguments);
        let called = self.hub.call(self.cx, operation, None).await;
        self.cx.progress(self.calls.fetch_add(1, Ordering::Relaxed) + 1, None, name);
        match called.outcome {
            Ok(result) => tool_value(result).await,
            Err(error) => Err(self.error(name, &error)),
        }
    }
}

/// The declarations of the tools with these names or patterns of names, such as `github.*`.
pub fn declared_tools(
    hub: &dyn NestedCalls,
    cx: &CallHeader,
    names: &[String],
    max_bytes: usize,
) -> Result<String, ToolError> {
    let patterns: Vec<NamePattern> = names.iter().map(|name| NamePattern::new(name)).collect();
    let matches = |tool: &CallableTool| patterns.iter().any(|pattern| pattern.matches(tool));
    let tools = hub.callable_tools(cx, 0, &matches)?;
    let unknown = |pattern: &&NamePattern| !tools.iter().any(|tool| pattern.matches(tool));
    if let Some(unknown) = patterns.iter().find(unknown) {
        let name: String = unknown.shown().chars().take(MAX_NAME_CHARS).collect();
        return Err(ToolError::not_found(format!("Tool not found: `{name}`."))
            .hint("Find names with tools_find; `server.*` stands for all tools of a server."));
    }
    let left_out = tools.len().saturating_sub(MAX_DECLARED_TOOLS);
    let mut shown: Vec<(ToolBinding, Definition)> = Vec::new();
    for tool in tools.into_iter().take(MAX_DECLARED_TOOLS) {
        let definition = hub.tool(cx, &tool.name)?;
        shown.push((binding(tool), definition));
    }
    let text = declarations_of(&shown, max_bytes);
    Ok(match left_out {
        0 => text,
        left_out => format!("// {left_out} tools that match are left out. Name fewer.\n{text}"),
    })
}

/// A server could otherwise fill the first message to every program.
fn has_short_name(tool: &CallableTool) -> bool {
    tool.tool.len().max(tool.name.len()) <= MAX_NAME_BYTES
}

/// Whether a program has all words of a name. A name without words is not known.
fn are_known(name: &str, known: &HashSet<&str>) -> bool {
    let mut of_name = words(name).peekable();
    of_name.peek().is_some() && of_name.all(|word| known.contains(word))
}

fn binding(tool: CallableTool) -> ToolBinding {
    ToolBinding { path: tool.server.into_iter().chain([tool.tool]).collect(), name: tool.name }
}

fn declarations_of(tools: &[(ToolBinding, Definition)], max_bytes: usize) -> String {
    let schema = |definition: &Definition, member: &str| {
        definition.members.get(member).and_then(|schema| schema.to::<Value>().ok())
    };
    let texts: Vec<(String, Value, Option<Value>)> = tools
        .iter()
        .map(|(_, definition)| {
            let description = definition.members.text("description").unwrap_or_default();
            let input = schema(definition, "inputSchema").unwrap_or_default();
            (description, input, schema(definition, "outputSchema"))
        })
        .collect();
    let declared: Vec<ToolDeclaration<'_>> = tools
        .iter()
        .zip(&texts)
        .map(|((binding, _), (description, input_schema, output_schema))| ToolDeclaration {
            binding,
            description,
            input_schema,
            output_schema: output_schema.as_ref(),
        })
        .collect();
    declarations(&declared, max_bytes)
}

/// A name of tools as a model may write it: `tools.server.tool`, `server:tool`, `server__tool`, `tool`, or `server.*`.
struct NamePattern {
    name: String,
    /// Where the name begins without `tools.`; a tool may have a name that begins like that.
    short: usize,
    /// The name ends with `*`.
    is_prefix: bool,
}

impl NamePattern {
    fn new(name: &str) -> Self {
        let name = name.trim();
        let prefix = name.strip_suffix('*');
        let name = prefix.unwrap_or(name);
        let short = name.strip_prefix("tools.").unwrap_or(name);
        Self { name: name.to_owned(), short: name.len() - short.len(), is_prefix: prefix.is_some() }
    }

    fn shown(&self) -> &str {
        self.name.get(self.short..).unwrap_or_default()
    }

    fn matches(&self, tool: &CallableTool) -> bool {
        let is_match = |name: &str| {
            let own = [self.name.as_str(), self.shown()];
            own.iter().any(|own| if self.is_prefix { name.starts_with(own) } else { name == *own })
        };
        let with_server = tool
            .server
            .iter()
            .flat_map(|server| ["__", ".", ":"].map(|separator| format!("{server}{separator}{}", tool.tool)));
        is_match(&tool.name) || is_match(&tool.tool) || with_server.into_iter().any(|name| is_match(&name))
    }
}

/// The words of a text, of which names consist.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric() && !"_$".contains(letter))
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tools() {
        let tool = |server: Option<&str>, tool: &str, name: &str| CallableTool {
            name: name.to_owned(),
            server: server.map(str::to_owned),
            tool: tool.to_owned(),
        };
        let send = tool(Some("mail"), "send", "mail__send");
        let read = tool(None, "fs_read_text", "fs_read_text");
        for (name, of_mail, of_files) in [
            ("mail__send", true, false),
            ("mail.send", true, false),
            ("mail:send", true, false),
            ("tools.mail.send", true, false),
            ("send", true, false),
            ("mail.*", true, false),
            ("mail:*", true, false),
            ("fs_*", false, true),
            (" tools.fs_read_text ", false, true),
            ("*", true, true),
            ("mai.*", false, false),
            ("mail", false, false),
            ("", false, false),
        ] {
            let pattern = NamePattern::new(name);
            assert_eq!((pattern.matches(&send), pattern.matches(&read)), (of_mail, of_files), "{name}");
        }
    }

    #[test]
    fn a_name_that_is_long_or_has_no_words_reaches_no_program() {
        let program = HashSet::from(["send", "all"]);
        for (name, is_known) in
            [("send-all", true), ("send", true), ("send_all", false), ("-----", false), ("", false)]
        {
            assert_eq!(are_known(name, &program), is_known, "{name}");
        }
        for (bytes, is_short) in [(MAX_NAME_BYTES, true), (MAX_NAME_BYTES + 1, false), (20 << 20, false)] {
            let tool =
                CallableTool { name: "x".to_owned(), server: Some("s".to_owned()), tool: "x".repeat(bytes) };
            assert_eq!(has_short_name(&tool), is_short, "{bytes}");
        }
    }

    #[test]
    fn words_of_programs() {
        let found: Vec<&str> = words("await tools.mail[\"send-all\"]({to: 'Zoë'});").collect();
        assert_eq!(found, ["await", "tools", "mail", "send", "all", "to", "Zoë"]);
    }
}
