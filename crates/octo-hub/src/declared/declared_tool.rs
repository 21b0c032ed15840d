//! A declared tool, validated when it is loaded, so that only errors of the call itself remain.

use super::command::Command;
use super::execution;
use super::parameters::{Parameters, Variables};
use super::request::Request;
use super::template_text::TemplateText;
use super::tool_manifest::{EffectWord, Output, ToolManifest};
use octo_grants::Capabilities;
use octo_model::nearest;
use octo_model::{Effect, EffectOrigin, Json, JsonObject, MAX_NAME_LEN, ToolError, is_valid_name};
use octo_toolkit::Definition;
use serde_json::Value;
use std::time::Duration;

/// Shorter values occur by chance.
const MIN_SECRET_LEN: usize = 6;
const MAX_TIMEOUT_SECS: u64 = 3_600;

pub struct DeclaredTool {
    pub name: String,
    pub file: String,
    title: Option<String>,
    description: String,
    effect: Effect,
    timeout: Duration,
    output: Output,
    parameters: Parameters,
    action: ToolAction,
}

enum ToolAction {
    Command(Command),
    Request(Request),
}

impl ToolAction {
    fn texts(&self) -> Vec<&TemplateText> {
        match self {
            Self::Command(command) => command.texts().collect(),
            Self::Request(request) => request.texts(),
        }
    }

    fn conditions(&self) -> Vec<&str> {
        match self {
            Self::Command(command) => command.conditions().collect(),
            Self::Request(_) => Vec::new(),
        }
    }
}

impl DeclaredTool {
    pub fn new(name: &str, written: ToolManifest, file: &str) -> Result<Self, String> {
        if !is_valid_name(name) || name.len() > MAX_NAME_LEN {
            return Err(format!("a name consists of at most {MAX_NAME_LEN} letters, digits, `-` and `_`"));
        }
        if written.description.trim().is_empty() {
            return Err("the description is empty; agents choose tools by it".to_owned());
        }
        if !(1..=MAX_TIMEOUT_SECS).contains(&written.timeout_seconds) {
            return Err(format!("`timeout_seconds` must be between 1 and {MAX_TIMEOUT_SECS}"));
        }
        let parameters = Parameters::new(written.parameters)?;
        let execution = written.execution.map(execution::parse_command_line).transpose()?;
        let what = match (written.command.xor(execution), written.request) {
            (Some(command), None) => ToolAction::Command(Command::new(command, &parameters)?),
            (None, Some(request)) => ToolAction::Request(Request::new(request, &parameters)?),
            _ => {
                return Err("a tool must be either a `command` (or an `execution`) or a `request`".to_owned());
            }
        };
        check_parameter_use(&what, &parameters)?;
        let outward = match &what {
            ToolAction::Command(command) => command.network,
            ToolAction::Request(_) => true,
        };
        Ok(Self {
            name: name.to_owned(),
            file: file.to_owned(),
            title: written.title,
            description: written.description.split_whitespace().collect::<Vec<_>>().join(" "),
            effect: build_effect(written.effect, written.idempotent, outward),
            timeout: Duration::from_secs(written.timeout_seconds),
            output: written.output,
            parameters,
            action: what,
        })
    }

    pub fn definition(&self) -> Definition {
        let title = self.title.clone().unwrap_or_else(|| self.name.replace(['_', '-'], " "));
        let members = JsonObject::new()
            .with("name", self.name.as_str())
            .with("title", title.as_str())
            .with("description", self.description.as_str())
            .with("inputSchema", Json::from(self.parameters.schema.clone()))
            .with("annotations", self.effect.annotations(&title));
        Definition {
            key: self.name.clone(),
            members,
            effect: self.effect,
            effect_origin: EffectOrigin::Native,
        }
    }

    /// Runs with validated values. Variables of the hub's environment are redacted from the output.
    pub async fn run(
        &self,
        arguments: Option<&Json>,
        environment: &super::Environment,
        left: Duration,
        doors: &Capabilities,
    ) -> Result<JsonObject, ToolError> {
        let values = self.parameters.values(arguments)?;
        let variables = self.variables(environment)?;
        let timeout = self.timeout.min(left);
        let said = match &self.action {
            ToolAction::Command(command) => {
                command.run(values, &variables, !self.effect.read_only, timeout, doors).await
            }
            ToolAction::Request(request) => request.run(&values, &variables, timeout, doors).await,
        };
        match said {
            Ok(text) => self.result(&redact(&text, &variables)),
            Err(mut error) => {
                error.message = redact(&error.message, &variables).into();
                Err(error)
            }
        }
    }

    fn variables(&self, environment: &super::Environment) -> Result<Variables, ToolError> {
        let mut found = Variables::new();
        for name in self.action.texts().into_iter().flat_map(TemplateText::variables) {
            let value = environment(name).ok_or_else(|| {
                ToolError::unavailable(format!(
                    "This tool requires the environment variable {name}, which is not set."
                ))
                .hint("Ask the operator to set it in the hub's environment.")
            })?;
            found.insert(name.to_owned(), value);
        }
        Ok(found)
    }

    fn result(&self, text: &str) -> Result<JsonObject, ToolError> {
        let mut result = JsonObject::new();
        let shown = match self.output {
            Output::Text => text.to_owned(),
            Output::Json => {
                let value: Value = serde_json::from_str(text).map_err(|error| {
                    ToolError::unavailable("The tool's output is not valid JSON.")
                        .hint("Ask the operator to check the tool's `output`.")
                        .detail(error)
                })?;
                let value = if value.is_object() { value } else { serde_json::json!({"result": value}) };
                let json = Json::from(value);
                result.set("structuredContent", json.clone());
                json.to_string()
            }
        };
        let block = JsonObject::new().with("type", "text").with("text", Json::text(&shown));
        result.set("content", Json::array([&block.to_json()]));
        Ok(result.with("isError", false))
    }
}

/// Unknown parameters and unused parameters are both mistakes.
fn check_parameter_use(what: &ToolAction, parameters: &Parameters) -> Result<(), String> {
    let mut used: Vec<&str> = what.texts().into_iter().flat_map(TemplateText::parameters).collect();
    used.extend(what.conditions());
    if let Some(unknown) = used.iter().find(|name| parameters.get(name).is_none()) {
        let close = nearest(unknown, parameters.names());
        let close = close.map_or_else(String::new, |close| format!("; did you mean `{close}`?"));
        return Err(format!("`{unknown}` is not a parameter{close}"));
    }
    match parameters.names().find(|name| !used.contains(name)) {
        Some(idle) => Err(format!("the parameter `{idle}` is never used")),
        None => Ok(()),
    }
}

fn build_effect(word: EffectWord, idempotent: Option<bool>, outward: bool) -> Effect {
    let plain = match word {
        EffectWord::Reads => Effect::reads(),
        EffectWord::Writes => Effect::writes(),
        EffectWord::Destroys => Effect::destroys(),
    };
    let effect = Effect { idempotent: idempotent.unwrap_or(plain.idempotent), ..plain };
    if outward { effect.open_world() } else { effect }
}

fn redact(text: &str, variables: &Variables) -> String {
    let secrets = variables.iter().filter(|(_, value)| value.len() >= MIN_SECRET_LEN);
    secrets.fold(text.to_owned(), |text, (name, value)| text.replace(value.as_str(), &format!("[{name}]")))
}
