//! Prompts from the operator's playbooks and built-in prompts, as a native source.

mod prompt_manifest;
mod prompt_set;
mod prompt_template;
#[cfg(test)]
mod tests;

use crate::watched_files::{FileContents, WatchedFiles};
use crate::yaml_files::Problem;
use octo_grants::config_dirs::ConfigDirs;
use octo_model::nearest;
use octo_model::{Json, JsonObject, Method, Operation, ToolError};
use octo_toolkit::{BoxFuture, CallContext, ListingState, Source, SourceState};
use prompt_manifest::Argument;
pub use prompt_set::BuiltinPrompts;
use prompt_set::{Prompt, PromptSet};
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio::sync::watch;

/// Maximum of the protocol for one response.
const MAX_COMPLETIONS: usize = 100;

/// The source of prompts. It watches its directories, so it needs a runtime.
pub fn source(shipped: BuiltinPrompts, folders: ConfigDirs) -> Arc<dyn Source> {
    Arc::new(PromptSource(WatchedFiles::new(folders, SourceState::Ready, move |leaves, before| {
        prompt_set::load_prompts(shipped, leaves, before)
    })))
}

/// Problems in playbooks, without watching them.
pub fn problems(shipped: BuiltinPrompts, folders: &ConfigDirs) -> Vec<Problem> {
    prompt_set::load_prompts(shipped, &folders.read(), None).problems().to_vec()
}

struct PromptSource(WatchedFiles<PromptSet>);

impl Source for PromptSource {
    fn name(&self) -> &str {
        "prompts"
    }

    fn is_native(&self) -> bool {
        true
    }

    fn listing(&self) -> watch::Receiver<ListingState> {
        self.0.listing()
    }

    fn run<'a>(
        &'a self,
        op: Operation,
        _cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<JsonObject, ToolError>> {
        Box::pin(async move {
            let stock = self.0.contents();
            if matches!(op.method, Method::GetSkill | Method::ReadResource) {
                return stock.skills.run(&op);
            }
            let prompt = stock.all.get(&op.name).ok_or_else(|| {
                ToolError::not_found(format!("Prompt not found: `{}`.", op.name))
                    .hint("List the available prompts.")
            })?;
            match op.method {
                Method::Complete => Ok(complete(prompt, &op.params)),
                _ => render_prompt(&stock, &op.name, prompt, &op.params),
            }
        })
    }
}

fn render_prompt(
    stock: &PromptSet,
    name: &str,
    prompt: &Prompt,
    params: &JsonObject,
) -> Result<JsonObject, ToolError> {
    let given = parse_arguments(params)?;
    refuse_unknown_arguments(prompt, &given)?;
    let missing: Vec<String> = prompt
        .arguments
        .iter()
        .filter(|argument| {
            argument.required
                && argument_text(&given, &argument.name).is_none_or(|text| text.trim().is_empty())
        })
        .map(|argument| format!("`{}`", argument.name))
        .collect();
    if !missing.is_empty() {
        let what = if missing.len() == 1 { "argument" } else { "arguments" };
        return Err(invalid_prompt_call(
            format!("The prompt `{name}` requires the {what} {}.", missing.join(", ")),
            argument_hint(prompt),
        ));
    }
    let mut values = Map::new();
    for argument in &prompt.arguments {
        values
            .insert(argument.name.clone(), argument_value(argument, argument_text(&given, &argument.name))?);
    }
    let text = stock.engine.render(name, &values)?;
    let content = JsonObject::new().with("type", "text").with("text", text.as_str());
    let message = JsonObject::new().with("role", "user").with("content", content);
    Ok(JsonObject::new()
        .with("description", prompt.description.as_str())
        .with("messages", Json::array([&message.to_json()])))
}

/// The protocol only has strings; other frontends may send numbers and booleans.
fn parse_arguments(params: &JsonObject) -> Result<Map<String, Value>, ToolError> {
    let Some(arguments) = params.get("arguments").filter(|arguments| !arguments.is_null()) else {
        return Ok(Map::new());
    };
    let mut given: Map<String, Value> = arguments.to().map_err(|_| {
        invalid_prompt_call("The arguments must be a JSON object.".to_owned(), "Pass each argument by name.")
    })?;
    given.retain(|_, value| !value.is_null());
    match given.iter().find(|(_, value)| value.is_array() || value.is_object()) {
        Some((name, _)) => Err(invalid_prompt_call(
            format!("The argument `{name}` must be a string."),
            "Pass a single string.",
        )),
        None => Ok(given),
    }
}

fn refuse_unknown_arguments(prompt: &Prompt, given: &Map<String, Value>) -> Result<(), ToolError> {
    let names = || prompt.arguments.iter().map(|argument| argument.name.as_str());
    let Some(unknown) = given.keys().find(|name| !names().any(|known| known == *name)) else {
        return Ok(());
    };
    let hint = match nearest(unknown, names()) {
        Some(close) => format!("Did you mean `{close}`? {}", argument_hint(prompt)),
        None => argument_hint(prompt),
    };
    Err(invalid_prompt_call(format!("Unknown argument `{unknown}`."), hint))
}

fn argument_text(given: &Map<String, Value>, name: &str) -> Option<String> {
    given.get(name).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

/// Booleans are converted for the template: the text `false` would count as true.
fn argument_value(argument: &Argument, given: Option<String>) -> Result<Value, ToolError> {
    let text = given.filter(|text| !text.is_empty()).or_else(|| argument.default.clone()).unwrap_or_default();
    if !text.is_empty() && !argument.values.is_empty() && !argument.values.contains(&text) {
        let near = nearest(&text, argument.values.iter().map(String::as_str));
        let near = near.map_or_else(String::new, |near| format!("Did you mean `{near}`? "));
        return Err(invalid_prompt_call(
            format!(
                "The argument `{}` cannot be `{}`.",
                argument.name,
                text.chars().take(60).collect::<String>()
            ),
            format!("{near}It is one of: {}.", argument.values.join(", ")),
        ));
    }
    let is_switch = argument.values.len() == 2
        && ["true", "false"].iter().all(|word| argument.values.iter().any(|value| value == word));
    Ok(if is_switch { Value::Bool(text == "true") } else { Value::String(text) })
}

fn argument_hint(prompt: &Prompt) -> String {
    if prompt.arguments.is_empty() {
        return "It takes no arguments.".to_owned();
    }
    let name = |argument: &Argument| {
        if argument.required { format!("{} (required)", argument.name) } else { argument.name.clone() }
    };
    format!("Its arguments: {}.", prompt.arguments.iter().map(name).collect::<Vec<_>>().join(", "))
}

fn invalid_prompt_call(message: String, hint: impl Into<std::borrow::Cow<'static, str>>) -> ToolError {
    ToolError::invalid(message).hint(hint)
}

/// Prefix matches come before other matches.
fn complete(prompt: &Prompt, params: &JsonObject) -> JsonObject {
    let asked = params.object("argument");
    let (name, typed) = (asked.text("name").unwrap_or_default(), asked.text("value").unwrap_or_default());
    let typed = typed.to_lowercase();
    let argument = prompt.arguments.iter().find(|argument| argument.name == name);
    let offered = argument.into_iter().flat_map(|argument| argument.values.iter().chain(&argument.suggest));
    let (first, rest): (Vec<&String>, Vec<&String>) = offered
        .filter(|value| value.to_lowercase().contains(&typed))
        .partition(|value| value.to_lowercase().starts_with(&typed));
    let all: Vec<&String> = first.into_iter().chain(rest).collect();
    let shown: Vec<Json> = all.iter().take(MAX_COMPLETIONS).map(|value| Json::text(value)).collect();
    let completion = JsonObject::new()
        .with("values", Json::array(&shown))
        .with("total", Json::of(&all.len()))
        .with("hasMore", all.len() > shown.len());
    JsonObject::new().with("completion", completion)
}
