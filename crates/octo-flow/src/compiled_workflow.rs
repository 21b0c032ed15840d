//! Compiled workflow: parsed expressions, and the source position of every step.

use crate::diagnostic::Diagnostic;
use crate::expr::{Expr, Template, parse_expr};
use crate::schema_check;
use crate::spanned_yaml::SpannedYaml;
use crate::workflow_manifest::{self, OnError, OnErrorKeyword, Param, Repeat, Retry};
use serde_json::Value;
use std::collections::HashMap;

/// Maximum nesting of steps.
const MAX_STEP_DEPTH: usize = 8;

pub struct CompiledWorkflow {
    pub name: String,
    pub params: Vec<(String, Param)>,
    pub steps: Vec<Step>,
    pub outputs: Vec<(String, Template)>,
    /// Number of surrounding loops of each step, without its own.
    pub loop_depth: HashMap<String, usize>,
    pub source: SpannedYaml,
}

pub struct Step {
    pub id: String,
    /// JSON pointer of the step in the text.
    pub pointer: String,
    pub action: Action,
    pub condition: Option<Expr>,
    pub for_each: Option<ForEach>,
    pub retry: Option<Retry>,
    pub timeout_seconds: Option<f64>,
    pub on_error: ErrorHandler,
    pub repeat: Repeat,
}

pub enum Action {
    Tool { name: String, with: Vec<(String, Template)> },
    Llm { prompt: Template, system: Template, schema: Option<Value>, max_tokens: u64 },
    Group(Vec<Step>),
    Parallel(Vec<Vec<Step>>),
    Fail(Template),
}

pub struct ForEach {
    pub items: LoopItems,
    pub name: String,
    pub concurrency: usize,
}

pub enum LoopItems {
    Expr(Expr),
    List(Template),
}

/// What happens on failure.
pub enum ErrorHandler {
    Fail,
    Continue,
    Steps(Vec<Step>),
}

impl Action {
    /// Returns whether it is a single call, rather than nested steps.
    pub const fn is_call(&self) -> bool {
        matches!(self, Self::Tool { .. } | Self::Llm { .. })
    }

    /// The nested steps, by branch.
    pub fn inner(&self) -> Vec<&[Step]> {
        match self {
            Self::Group(steps) => vec![steps],
            Self::Parallel(branches) => branches.iter().map(Vec::as_slice).collect(),
            _ => Vec::new(),
        }
    }
}

impl CompiledWorkflow {
    /// Parses a text. Reports every problem that can be found without tools.
    pub fn parse(text: &str) -> Result<Self, Vec<Diagnostic>> {
        let source = SpannedYaml::parse(text).map_err(|problem| vec![problem])?;
        let problems = schema_check::check(&source);
        if !problems.is_empty() {
            return Err(problems);
        }
        let written: workflow_manifest::WorkflowManifest = serde_json::from_value(source.value.clone())
            .map_err(|error| vec![Diagnostic::at_root(error.to_string())])?;
        let mut reader = PlanBuilder { source: &source, problems: Vec::new(), loops: HashMap::new() };
        let params = reader.params(&written.params);
        let steps = reader.steps(written.steps, "/steps", 0, 0);
        let outputs = written.outputs.iter().map(|(name, value)| {
            let pointer = format!("/outputs/{}", crate::spanned_yaml::escape_pointer(name));
            (name.clone(), reader.template(value, &pointer))
        });
        let outputs = outputs.collect();
        let PlanBuilder { mut problems, loops, .. } = reader;
        if problems.is_empty() {
            return Ok(Self { name: written.name, params, steps, outputs, loop_depth: loops, source });
        }
        problems.sort_by_key(|problem| problem.position);
        Err(problems)
    }

    pub fn step(&self, id: &str) -> Option<&Step> {
        find_step(&self.steps, id)
    }

    /// Returns whether a key of the trace is a single call, rather than a group.
    pub fn is_call(&self, key: &str) -> bool {
        let mut parts = key.split('[');
        let step = parts.next().and_then(|id| self.step(id));
        let loops = parts.count();
        step.is_some_and(|step| {
            let own = usize::from(step.for_each.is_some());
            step.action.inner().is_empty()
                && self.loop_depth.get(&step.id).is_some_and(|around| around + own == loops)
        })
    }

    /// Number of calls, each loop counted once.
    pub fn call_count(&self) -> usize {
        count_calls(&self.steps)
    }

    pub fn params_schema(&self) -> Value {
        let properties = self.params.iter().map(|(name, param)| (name.clone(), param.schema()));
        let required: Vec<&str> = self
            .params
            .iter()
            .filter(|(_, param)| param.required && param.default.is_none())
            .map(|(name, _)| name.as_str())
            .collect();
        serde_json::json!({
            "type": "object",
            "properties": properties.collect::<serde_json::Map<_, _>>(),
            "required": required,
            "additionalProperties": false,
        })
    }
}

fn find_step<'a>(steps: &'a [Step], id: &str) -> Option<&'a Step> {
    steps.iter().find_map(|step| {
        if step.id == id {
            return Some(step);
        }
        let mut inner = step.action.inner();
        if let ErrorHandler::Steps(handler) = &step.on_error {
            inner.push(handler);
        }
        inner.into_iter().find_map(|steps| find_step(steps, id))
    })
}

fn count_calls(steps: &[Step]) -> usize {
    steps
        .iter()
        .map(|step| {
            usize::from(step.action.is_call())
                + step.action.inner().into_iter().map(count_calls).sum::<usize>()
        })
        .sum()
}

struct PlanBuilder<'a> {
    source: &'a SpannedYaml,
    problems: Vec<Diagnostic>,
    loops: HashMap<String, usize>,
}

impl PlanBuilder<'_> {
    fn error(&mut self, pointer: &str, message: impl Into<String>, hint: Option<&str>) {
        self.problems.push(Diagnostic {
            position: self.source.position(pointer),
            pointer: pointer.to_owned(),
            message: message.into(),
            hint: hint.map(str::to_owned),
        });
    }

    fn template(&mut self, value: &Value, pointer: &str) -> Template {
        let mut wrong = Vec::new();
        let template = Template::read(value, pointer, &mut |at, why| wrong.push((at.to_owned(), why)));
        for (at, why) in wrong {
            self.parse_error(&at, &why);
        }
        template
    }

    fn text(&mut self, text: &str, pointer: &str) -> Template {
        self.template(&Value::String(text.to_owned()), pointer)
    }

    fn expr(&mut self, text: &str, pointer: &str) -> Expr {
        parse_expr(text).unwrap_or_else(|why| {
            self.parse_error(pointer, &why);
            Expr::Literal(Value::Null)
        })
    }

    fn parse_error(&mut self, pointer: &str, why: &str) {
        let hint = "Write literal braces as \\{{.";
        self.error(pointer, format!("Invalid expression: {why}."), Some(hint));
    }

    fn params(&mut self, written: &serde_json::Map<String, Value>) -> Vec<(String, Param)> {
        let mut params = Vec::new();
        for (name, value) in written {
            let pointer = format!("/params/{name}");
            let param: Param = match serde_json::from_value(value.clone()) {
                Ok(param) => param,
                Err(error) => {
                    self.error(&pointer, error.to_string(), None);
                    continue;
                }
            };
            let schema = param.schema();
            if let Some(default) = &param.default
                && !jsonschema::is_valid(&schema, default)
            {
                let at = format!("{pointer}/default");
                self.error(&at, format!("The default {default} does not match the parameter."), None);
            }
            for choice in param.choices.iter().filter(|choice| !jsonschema::is_valid(&schema, choice)) {
                self.error(
                    &format!("{pointer}/enum"),
                    format!("{choice} is not of type {}.", param.kind.as_str()),
                    None,
                );
            }
            params.push((name.clone(), param));
        }
        params
    }

    fn steps(
        &mut self,
        written: Vec<workflow_manifest::StepManifest>,
        pointer: &str,
        depth: usize,
        loops: usize,
    ) -> Vec<Step> {
        if depth > MAX_STEP_DEPTH {
            self.error(pointer, format!("Steps are nested more than {MAX_STEP_DEPTH} deep."), None);
            return Vec::new();
        }
        let read = |(at, step)| self.step(step, &format!("{pointer}/{at}"), depth, loops);
        written.into_iter().enumerate().map(read).collect()
    }

    fn step(
        &mut self,
        written: workflow_manifest::StepManifest,
        pointer: &str,
        depth: usize,
        loops: usize,
    ) -> Step {
        let at = |name: &str| format!("{pointer}/{name}");
        if self.loops.insert(written.id.clone(), loops).is_some() {
            self.error(&at("id"), format!("Duplicate step id `{}`.", written.id), None);
        }
        let condition = written.condition.map(|condition| match condition {
            Value::String(text) => self.expr(&text, &at("if")),
            other => Expr::Literal(other),
        });
        let for_each = written.for_each.map(|items| ForEach {
            items: match &items {
                Value::String(text) => LoopItems::Expr(self.expr(text, &at("for_each"))),
                list => LoopItems::List(self.template(list, &at("for_each"))),
            },
            name: written.name.clone(),
            concurrency: written.concurrency,
        });
        if for_each.is_some() && matches!(written.name.as_str(), "params" | "steps" | "index") {
            self.error(&at("as"), format!("`{}` is reserved.", written.name), None);
        }
        let inside = loops + usize::from(for_each.is_some());
        let action = if let Some(name) = written.tool {
            let with = written.with.iter().map(|(name, value)| {
                let pointer = format!("{pointer}/with/{}", crate::spanned_yaml::escape_pointer(name));
                (name.clone(), self.template(value, &pointer))
            });
            Action::Tool { name, with: with.collect() }
        } else if let Some(llm) = written.llm {
            Action::Llm {
                prompt: self.text(&llm.prompt, &at("llm/prompt")),
                system: self.text(&llm.system, &at("llm/system")),
                schema: llm.schema,
                max_tokens: llm.max_tokens,
            }
        } else if let Some(steps) = written.steps {
            Action::Group(self.steps(steps, &at("steps"), depth + 1, inside))
        } else if let Some(branches) = written.parallel {
            let read =
                |(at, steps)| self.steps(steps, &format!("{pointer}/parallel/{at}"), depth + 1, inside);
            Action::Parallel(branches.into_iter().enumerate().map(read).collect())
        } else {
            Action::Fail(self.text(&written.fail.unwrap_or_default(), &at("fail")))
        };
        if !action.is_call() {
            self.reject_call_options(&written.retry, written.timeout_seconds, written.repeat, pointer);
        }
        let on_error = match written.on_error {
            OnError::Keyword(OnErrorKeyword::Continue) => ErrorHandler::Continue,
            OnError::Steps { steps } => {
                ErrorHandler::Steps(self.steps(steps, &at("on_error/steps"), depth + 1, inside))
            }
            OnError::Keyword(OnErrorKeyword::Fail) | OnError::Unset => ErrorHandler::Fail,
        };
        Step {
            id: written.id,
            pointer: pointer.to_owned(),
            action,
            condition,
            for_each,
            retry: written.retry,
            timeout_seconds: written.timeout_seconds,
            on_error,
            repeat: written.repeat,
        }
    }

    fn reject_call_options(
        &mut self,
        retry: &Option<Retry>,
        timeout: Option<f64>,
        repeat: Repeat,
        pointer: &str,
    ) {
        for (name, given) in [
            ("retry", retry.is_some()),
            ("timeout_seconds", timeout.is_some()),
            ("repeat", repeat == Repeat::Allowed),
        ] {
            if given {
                let hint = "Set it on the inner steps.";
                self.error(
                    &format!("{pointer}/{name}"),
                    format!("`{name}` only applies to a step with `tool` or `llm`."),
                    Some(hint),
                );
            }
        }
    }
}
