//! A plan held against the tools as they are now, before anything runs.

mod arguments;
mod form;
mod names;
mod scope;
#[cfg(test)]
mod tests;

use crate::expr::{Expr, Path, Template};
use crate::plan::{Act, Caught, Items, Plan, Step};
use crate::problem::Problem;
use form::Form;
use octo_model::{Effect, EffectClass, ToolError};
use scope::{Scope, Seen};
use serde_json::Value;
use std::collections::HashSet;

/// What is known of a tool.
pub struct Facts {
    pub input: Value,
    pub output: Option<Value>,
    pub effect: Effect,
    /// Whether what it says of itself is a fact.
    pub vouched: bool,
}

impl Facts {
    /// Whether it may run again when nobody knows whether it has run.
    pub const fn is_repeatable(&self) -> bool {
        self.vouched && (self.effect.read_only || self.effect.idempotent)
    }
}

/// What a workflow runs in.
pub trait World {
    fn tool(&self, name: &str) -> Result<Facts, ToolError>;
    /// Nothing, or why there is no language model.
    fn model(&self) -> Result<(), ToolError>;
}

/// A tool that the workflow calls.
pub struct Used {
    pub name: String,
    pub class: EffectClass,
    pub repeatable: bool,
    /// The steps that call it.
    pub steps: Vec<String>,
}

#[derive(Default)]
pub struct Found {
    pub errors: Vec<Problem>,
    pub warnings: Vec<Problem>,
    pub tools: Vec<Used>,
}

/// Everything that is wrong, in the order of the lines.
pub fn check(plan: &Plan, world: &dyn World) -> Found {
    let mut checker = Checker { plan, world, found: Found::default(), params: HashSet::new() };
    let mut scope = Scope::default();
    checker.list(&plan.steps, &mut scope);
    for (name, template) in &plan.outputs {
        let pointer = format!("/outputs/{}", crate::source::escaped(name));
        checker.template(template, &scope, &pointer);
    }
    for (name, _) in plan.params.iter().filter(|(name, _)| !checker.params.contains(name.as_str())) {
        let pointer = format!("/params/{name}");
        checker.found.warnings.push(Problem {
            mark: plan.source.mark(&pointer),
            pointer,
            message: format!("The parameter `{name}` is used nowhere."),
            hint: None,
        });
    }
    let mut found = checker.found;
    found.errors.sort_by_key(|problem| problem.mark);
    found
}

struct Checker<'a> {
    plan: &'a Plan,
    world: &'a dyn World,
    found: Found,
    /// The parameters that are used.
    params: HashSet<String>,
}

/// Whether a list of steps always fails before its end.
#[derive(PartialEq, Eq)]
enum End {
    Reached,
    Never,
}

impl Checker<'_> {
    fn wrong(&mut self, pointer: &str, message: impl Into<String>, hint: Option<String>) {
        self.found.errors.push(Problem {
            mark: self.plan.source.mark(pointer),
            pointer: pointer.to_owned(),
            message: message.into(),
            hint,
        });
    }

    fn list(&mut self, steps: &[Step], scope: &mut Scope) -> End {
        let mut end = End::Reached;
        for step in steps {
            if end == End::Never {
                let message = "This step can never run: a step before it always fails.";
                self.wrong(&step.pointer, message, Some("Give the failing step an `if`.".to_owned()));
                return end;
            }
            end = self.step(step, scope);
        }
        end
    }

    fn step(&mut self, step: &Step, scope: &mut Scope) -> End {
        let mut inside = scope.clone();
        if let Some(condition) = &step.condition {
            let pointer = format!("{}/if", step.pointer);
            self.truth(condition, &inside, &pointer);
            if condition.constant() == Some(Value::Bool(false)) {
                let message = "This step can never run: its `if` is always false.";
                self.wrong(&pointer, message, Some("Take the step out, or ask something.".to_owned()));
            }
            inside.assume(condition);
        }
        if step.each.is_some() {
            self.each(step, &mut inside);
        }
        let (form, ends) = self.act(step, &mut inside);
        let seen = Seen {
            form: if step.each.is_some() {
                Some(Form::List(form.filter(|_| matches!(step.on_error, Caught::Fail)).map(Box::new)))
            } else {
                form
            },
            lacks: match (&step.condition, &step.on_error) {
                (Some(_), _) => Some("the step has an `if`"),
                (None, Caught::Fail) => None,
                // A loop gives its list, with nothing in the place of what failed.
                (None, _) if step.each.is_some() => None,
                (None, _) => Some("the step may have failed"),
            },
        };
        let mut handled = None;
        if let Caught::Steps(handler) = &step.on_error {
            let mut caught = inside.clone();
            caught.meet(&step.id, seen.clone());
            caught.present.push(Path::of_step(&step.id, "error"));
            self.list(handler, &mut caught);
            handled = Some(caught);
        }
        if step.each.is_none() {
            scope.adopt(&inside, seen.lacks);
            if let Some(handled) = handled {
                scope.adopt(&handled, Some("the step only runs when another has failed"));
            }
        }
        scope.meet(&step.id, seen);
        let always = step.condition.is_none() && matches!(step.on_error, Caught::Fail);
        if ends == End::Never && always { End::Never } else { End::Reached }
    }

    /// Checks what is looped over, and brings the item into scope.
    fn each(&mut self, step: &Step, inside: &mut Scope) {
        let Some(each) = &step.each else { return };
        let pointer = format!("{}/for_each", step.pointer);
        let form = match &each.items {
            Items::Expr(expr) => {
                let form = self.form(expr, inside, &pointer);
                let kinds = form.as_ref().and_then(Form::kinds);
                if let Some(kinds) = kinds.filter(|kinds| !kinds.iter().any(|kind| kind == "array")) {
                    self.wrong(&pointer, format!("This is a {}, not a list.", kinds.join(" or ")), None);
                }
                form.and_then(|form| form.item())
            }
            Items::List(template) => {
                self.template(template, inside, &pointer);
                if *template == Template::Literal(Value::Array(Vec::new())) {
                    self.wrong(
                        &pointer,
                        "This step can never run: there is nothing in its `for_each`.",
                        None,
                    );
                }
                match template {
                    Template::Literal(Value::Array(items)) => Form::of_all(items),
                    _ => None,
                }
            }
        };
        inside.vars.push((each.name.clone(), form));
        inside.vars.push(("index".to_owned(), Some(Form::of(serde_json::json!({"type": "integer"}), true))));
    }

    /// Checks what the step does; gives the form of its output.
    fn act(&mut self, step: &Step, inside: &mut Scope) -> (Option<Form>, End) {
        match &step.act {
            Act::Tool { name, with } => (self.tool(step, name, with, inside), End::Reached),
            Act::Llm { prompt, system, schema, .. } => {
                if let Err(error) = self.world.model() {
                    let hint = error.hint.map(|hint| hint.into_owned());
                    self.wrong(&format!("{}/llm", step.pointer), error.message.into_owned(), hint);
                }
                self.template(prompt, inside, &format!("{}/llm/prompt", step.pointer));
                self.template(system, inside, &format!("{}/llm/system", step.pointer));
                let text = serde_json::json!({"type": "object", "properties": {"text": {"type": "string"}}});
                if let Some(schema) = schema
                    && let Err(error) = jsonschema::options().build(schema)
                {
                    let pointer = format!("{}/llm/schema", step.pointer);
                    self.wrong(&pointer, format!("This is no JSON Schema: {error}."), None);
                }
                (Some(Form::of(schema.clone().unwrap_or(text), true)), End::Reached)
            }
            Act::Group(steps) => {
                let end = self.list(steps, inside);
                (Some(inside.members(steps)), end)
            }
            Act::Parallel(branches) => {
                let before = inside.clone();
                let mut end = End::Reached;
                for branch in branches {
                    let mut own = before.clone();
                    if self.list(branch, &mut own) == End::Never {
                        end = End::Never;
                    }
                    inside.adopt(&own, None);
                }
                (Some(inside.members(branches.iter().flatten())), end)
            }
            Act::Fail(message) => {
                self.template(message, inside, &format!("{}/fail", step.pointer));
                (None, End::Never)
            }
        }
    }

    /// Checks every expression of a value.
    fn template(&mut self, template: &Template, scope: &Scope, pointer: &str) {
        match template {
            Template::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.template(item, scope, &format!("{pointer}/{at}"));
                }
            }
            Template::Members(members) => {
                for (name, item) in members {
                    self.template(item, scope, &format!("{pointer}/{}", crate::source::escaped(name)));
                }
            }
            other => other.exprs().into_iter().for_each(|expr| {
                self.form(expr, scope, pointer);
            }),
        }
    }

    fn truth(&mut self, expr: &Expr, scope: &Scope, pointer: &str) {
        let kinds = self.form(expr, scope, pointer).as_ref().and_then(Form::kinds);
        if let Some(kinds) = kinds.filter(|kinds| !kinds.iter().any(|kind| kind == "boolean")) {
            let hint = "Compare it with something, or use exists(…).".to_owned();
            self.wrong(pointer, format!("This is a {}, not true or false.", kinds.join(" or ")), Some(hint));
        }
    }
}
