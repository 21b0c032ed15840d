//! Static check of a workflow against the current tools, before anything runs.

mod check_arguments;
mod infer_types;
mod static_scope;
#[cfg(test)]
mod tests;
mod value_type;

use crate::compiled_workflow::{Action, CompiledWorkflow, ErrorHandler, LoopItems, Step};
use crate::diagnostic::Diagnostic;
use crate::expr::{Expr, ExprPath, Template};
use octo_model::{Effect, EffectClass, EffectOrigin, ToolError};
use serde_json::Value;
use static_scope::{Scope, StepBinding};
use std::collections::HashSet;
use value_type::ValueType;

/// Properties of a tool.
pub struct ToolInfo {
    pub input: Value,
    pub output: Option<Value>,
    pub effect: Effect,
    pub effect_origin: EffectOrigin,
}

impl ToolInfo {
    /// Returns whether it may run again if it is unknown whether it has run.
    pub const fn is_repeatable(&self) -> bool {
        self.effect_origin.is_trusted() && (self.effect.read_only || self.effect.idempotent)
    }
}

/// The tools that a workflow runs with.
pub trait ToolLookup {
    fn tool(&self, name: &str) -> Result<ToolInfo, ToolError>;
    /// Fails with the reason if there is no language model.
    fn require_model(&self) -> Result<(), ToolError>;
}

/// A tool that the workflow calls.
pub struct ToolUse {
    pub name: String,
    pub class: EffectClass,
    pub repeatable: bool,
    /// The steps that call it.
    pub steps: Vec<String>,
}

#[derive(Default)]
pub struct CheckReport {
    pub errors: Vec<Diagnostic>,
    pub warnings: Vec<Diagnostic>,
    pub tools: Vec<ToolUse>,
}

/// Returns all problems, in line order.
pub fn check(plan: &CompiledWorkflow, tools: &dyn ToolLookup) -> CheckReport {
    let mut checker = Checker { plan, tools, report: CheckReport::default(), used_params: HashSet::new() };
    let mut scope = Scope::default();
    checker.check_steps(&plan.steps, &mut scope);
    for (name, template) in &plan.outputs {
        let pointer = format!("/outputs/{}", crate::spanned_yaml::escape_pointer(name));
        checker.check_template(template, &scope, &pointer);
    }
    for (name, _) in plan.params.iter().filter(|(name, _)| !checker.used_params.contains(name.as_str())) {
        let pointer = format!("/params/{name}");
        checker.report.warnings.push(Diagnostic {
            position: plan.source.position(&pointer),
            pointer,
            message: format!("The parameter `{name}` is never used."),
            hint: None,
        });
    }
    let mut found = checker.report;
    found.errors.sort_by_key(|problem| problem.position);
    found
}

struct Checker<'a> {
    plan: &'a CompiledWorkflow,
    tools: &'a dyn ToolLookup,
    report: CheckReport,
    /// The parameters that are used.
    used_params: HashSet<String>,
}

/// Whether a list of steps always fails before its end.
#[derive(PartialEq, Eq)]
enum Completion {
    MayComplete,
    AlwaysFails,
}

impl Checker<'_> {
    fn error(&mut self, pointer: &str, message: impl Into<String>, hint: Option<String>) {
        self.report.errors.push(Diagnostic {
            position: self.plan.source.position(pointer),
            pointer: pointer.to_owned(),
            message: message.into(),
            hint,
        });
    }

    fn check_steps(&mut self, steps: &[Step], scope: &mut Scope) -> Completion {
        let mut end = Completion::MayComplete;
        for step in steps {
            if end == Completion::AlwaysFails {
                let message = "This step can never run: a step before it always fails.";
                self.error(&step.pointer, message, Some("Give the failing step an `if`.".to_owned()));
                return end;
            }
            end = self.check_step(step, scope);
        }
        end
    }

    fn check_step(&mut self, step: &Step, scope: &mut Scope) -> Completion {
        let mut inside = scope.clone();
        if let Some(condition) = &step.condition {
            let pointer = format!("{}/if", step.pointer);
            self.check_condition(condition, &inside, &pointer);
            if condition.const_value() == Some(Value::Bool(false)) {
                let message = "This step can never run: its `if` is always false.";
                self.error(&pointer, message, Some("Remove the step, or change the condition.".to_owned()));
            }
            inside.assume_true(condition);
        }
        if step.for_each.is_some() {
            self.check_for_each(step, &mut inside);
        }
        let (form, ends) = self.check_action(step, &mut inside);
        let seen = StepBinding {
            value_type: if step.for_each.is_some() {
                Some(ValueType::List(
                    form.filter(|_| matches!(step.on_error, ErrorHandler::Fail)).map(Box::new),
                ))
            } else {
                form
            },
            absent_reason: match (&step.condition, &step.on_error) {
                (Some(_), _) => Some("the step has an `if`"),
                (None, ErrorHandler::Fail) => None,
                // A loop outputs its list, with null for failed items.
                (None, _) if step.for_each.is_some() => None,
                (None, _) => Some("the step may have failed"),
            },
        };
        let mut handled = None;
        if let ErrorHandler::Steps(handler) = &step.on_error {
            let mut caught = inside.clone();
            caught.bind(&step.id, seen.clone());
            caught.present.push(ExprPath::step_member(&step.id, "error"));
            self.check_steps(handler, &mut caught);
            handled = Some(caught);
        }
        if step.for_each.is_none() {
            scope.merge(&inside, seen.absent_reason);
            if let Some(handled) = handled {
                scope.merge(&handled, Some("the step only runs if another has failed"));
            }
        }
        scope.bind(&step.id, seen);
        let always = step.condition.is_none() && matches!(step.on_error, ErrorHandler::Fail);
        if ends == Completion::AlwaysFails && always {
            Completion::AlwaysFails
        } else {
            Completion::MayComplete
        }
    }

    /// Checks the list of a loop, and adds the item to the scope.
    fn check_for_each(&mut self, step: &Step, inside: &mut Scope) {
        let Some(each) = &step.for_each else { return };
        let pointer = format!("{}/for_each", step.pointer);
        let form = match &each.items {
            LoopItems::Expr(expr) => {
                let form = self.infer_type(expr, inside, &pointer);
                let kinds = form.as_ref().and_then(ValueType::json_types);
                if let Some(kinds) = kinds.filter(|kinds| !kinds.iter().any(|kind| kind == "array")) {
                    self.error(&pointer, format!("This is a {}, not a list.", kinds.join(" or ")), None);
                }
                form.and_then(|form| form.item())
            }
            LoopItems::List(template) => {
                self.check_template(template, inside, &pointer);
                if *template == Template::Literal(Value::Array(Vec::new())) {
                    self.error(&pointer, "This step can never run: its `for_each` is empty.", None);
                }
                match template {
                    Template::Literal(Value::Array(items)) => ValueType::of_literals(items),
                    _ => None,
                }
            }
        };
        inside.vars.push((each.name.clone(), form));
        inside.vars.push((
            "index".to_owned(),
            Some(ValueType::from_schema(serde_json::json!({"type": "integer"}), true)),
        ));
    }

    /// Checks the action of a step; returns the type of its output.
    fn check_action(&mut self, step: &Step, inside: &mut Scope) -> (Option<ValueType>, Completion) {
        match &step.action {
            Action::Tool { name, with } => {
                (self.check_tool(step, name, with, inside), Completion::MayComplete)
            }
            Action::Llm { prompt, system, schema, .. } => {
                if let Err(error) = self.tools.require_model() {
                    let hint = error.hint.map(|hint| hint.into_owned());
                    self.error(&format!("{}/llm", step.pointer), error.message.into_owned(), hint);
                }
                self.check_template(prompt, inside, &format!("{}/llm/prompt", step.pointer));
                self.check_template(system, inside, &format!("{}/llm/system", step.pointer));
                let text = serde_json::json!({"type": "object", "properties": {"text": {"type": "string"}}});
                if let Some(schema) = schema
                    && let Err(error) = jsonschema::options().build(schema)
                {
                    let pointer = format!("{}/llm/schema", step.pointer);
                    self.error(&pointer, format!("Invalid JSON Schema: {error}."), None);
                }
                (Some(ValueType::from_schema(schema.clone().unwrap_or(text), true)), Completion::MayComplete)
            }
            Action::Group(steps) => {
                let end = self.check_steps(steps, inside);
                (Some(inside.outputs_of(steps)), end)
            }
            Action::Parallel(branches) => {
                let before = inside.clone();
                let mut end = Completion::MayComplete;
                for branch in branches {
                    let mut own = before.clone();
                    if self.check_steps(branch, &mut own) == Completion::AlwaysFails {
                        end = Completion::AlwaysFails;
                    }
                    inside.merge(&own, None);
                }
                (Some(inside.outputs_of(branches.iter().flatten())), end)
            }
            Action::Fail(message) => {
                self.check_template(message, inside, &format!("{}/fail", step.pointer));
                (None, Completion::AlwaysFails)
            }
        }
    }

    /// Checks every expression in a value.
    fn check_template(&mut self, template: &Template, scope: &Scope, pointer: &str) {
        match template {
            Template::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.check_template(item, scope, &format!("{pointer}/{at}"));
                }
            }
            Template::Object(members) => {
                for (name, item) in members {
                    self.check_template(
                        item,
                        scope,
                        &format!("{pointer}/{}", crate::spanned_yaml::escape_pointer(name)),
                    );
                }
            }
            other => other.exprs().into_iter().for_each(|expr| {
                self.infer_type(expr, scope, pointer);
            }),
        }
    }

    fn check_condition(&mut self, expr: &Expr, scope: &Scope, pointer: &str) {
        let kinds = self.infer_type(expr, scope, pointer).as_ref().and_then(ValueType::json_types);
        if let Some(kinds) = kinds.filter(|kinds| !kinds.iter().any(|kind| kind == "boolean")) {
            let hint = "Compare it with something, or use exists(…).".to_owned();
            self.error(pointer, format!("This is a {}, not a boolean.", kinds.join(" or ")), Some(hint));
        }
    }
}
