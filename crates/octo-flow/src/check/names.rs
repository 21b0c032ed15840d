//! Where the paths of expressions lead, and what the expressions give.

use super::form::{Form, Leads, kind_of};
use super::{Checker, Scope};
use crate::expr::{Expr, Part, Path};
use octo_model::nearest;
use serde_json::{Value, json};

/// Whether a path that leads to nothing is an answer, too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Absence {
    Wrong,
    Fine,
}

impl Checker<'_> {
    /// Checks an expression and tells what is known of its value.
    pub(super) fn form(&mut self, expr: &Expr, scope: &Scope, pointer: &str) -> Option<Form> {
        let typed = |kind: &str| Some(Form::of(json!({"type": kind}), true));
        match expr {
            Expr::Literal(value) => typed(kind_of(value)),
            Expr::List(items) => {
                items.iter().for_each(|item| {
                    self.form(item, scope, pointer);
                });
                Some(Form::List(None))
            }
            Expr::Path(path) => self.path(path, scope, pointer, Absence::Wrong),
            Expr::Exists(path) => {
                self.path(path, scope, pointer, Absence::Fine);
                typed("boolean")
            }
            Expr::Not(inner) => {
                self.truth(inner, scope, pointer);
                typed("boolean")
            }
            Expr::And(left, right) => {
                self.truth(left, scope, pointer);
                let mut then = scope.clone();
                then.assume(left);
                self.truth(right, &then, pointer);
                typed("boolean")
            }
            Expr::Or(left, right) => {
                self.truth(left, scope, pointer);
                let mut then = scope.clone();
                then.deny(left);
                self.truth(right, &then, pointer);
                typed("boolean")
            }
            Expr::Compare(_, left, right) | Expr::Contains(left, right) => {
                self.form(left, scope, pointer);
                self.form(right, scope, pointer);
                typed("boolean")
            }
            Expr::Default(value, other) => self.default(value, other, scope, pointer),
            Expr::Length(inner) => {
                self.form(inner, scope, pointer);
                typed("integer")
            }
            Expr::Join(list, between) => {
                self.form(list, scope, pointer);
                self.form(between, scope, pointer);
                typed("string")
            }
            Expr::Lines(inner) => {
                self.form(inner, scope, pointer);
                Some(Form::List(typed("string").map(Box::new)))
            }
        }
    }

    fn default(&mut self, value: &Expr, other: &Expr, scope: &Scope, pointer: &str) -> Option<Form> {
        let value = match value {
            Expr::Path(path) => self.path(path, scope, pointer, Absence::Fine),
            other => self.form(other, scope, pointer),
        };
        let other = self.form(other, scope, pointer);
        // Either may be what it gives; only their types are known then.
        let mut kinds = value.as_ref().and_then(Form::kinds)?;
        kinds.extend(other.as_ref().and_then(Form::kinds)?);
        match (value, kinds.as_slice()) {
            (Some(form), [first, rest @ ..]) if rest.iter().all(|kind| kind == first) => Some(form),
            _ => Some(Form::of(json!({"type": kinds}), true)),
        }
    }

    /// Follows a path as far as anything is known.
    fn path(&mut self, path: &Path, scope: &Scope, pointer: &str, absence: Absence) -> Option<Form> {
        let (mut form, used) = self.begin(path, scope, pointer, absence)?;
        for (at, part) in path.parts.iter().enumerate().skip(used) {
            form = match form.lead(part) {
                Leads::To(form) => form,
                Leads::Somewhere => return None,
                Leads::Nowhere(known) => {
                    let parts = path.parts.get(..=at).unwrap_or_default().to_vec();
                    let told = Path { root: path.root.clone(), parts };
                    let hint = match part {
                        Part::Name(name) => closest(name, &known),
                        _ => None,
                    };
                    self.wrong(pointer, format!("`{told}` does not exist."), hint);
                    return None;
                }
            };
            if *part == Part::Each {
                let rest = Path { root: String::new(), parts: path.parts.get(at + 1..)?.to_vec() };
                let item = self.rest(form, &rest, path, pointer);
                return Some(Form::List(item.map(Box::new)));
            }
        }
        Some(form)
    }

    /// What stands behind `[*]`, of one item.
    fn rest(&mut self, form: Form, rest: &Path, whole: &Path, pointer: &str) -> Option<Form> {
        let mut form = form;
        for part in &rest.parts {
            form = match form.lead(part) {
                Leads::To(inner) if *part == Part::Each => return Some(Form::List(Some(Box::new(inner)))),
                Leads::To(inner) => inner,
                Leads::Somewhere => return None,
                Leads::Nowhere(known) => {
                    let hint = match part {
                        Part::Name(name) => closest(name, &known),
                        _ => None,
                    };
                    self.wrong(pointer, format!("`{whole}` does not exist."), hint);
                    return None;
                }
            };
        }
        Some(form)
    }

    /// The value that a path begins at, and how many parts that took.
    fn begin(
        &mut self,
        path: &Path,
        scope: &Scope,
        pointer: &str,
        absence: Absence,
    ) -> Option<(Form, usize)> {
        if let Some((_, form)) = scope.vars.iter().rev().find(|(name, _)| *name == path.root) {
            return form.clone().map(|form| (form, 0));
        }
        match path.root.as_str() {
            "params" => self.param(path, scope, pointer, absence),
            "steps" => self.of_step(path, scope, pointer, absence),
            root => {
                let mut known = vec!["params".to_owned(), "steps".to_owned()];
                known.extend(scope.vars.iter().map(|(name, _)| name.clone()));
                let hint = if self.plan.params.iter().any(|(name, _)| name == root) {
                    Some(format!("Write `params.{root}`."))
                } else if self.plan.loops.contains_key(root) {
                    Some(format!("Write `steps.{root}.output`."))
                } else {
                    closest(root, &known)
                };
                self.wrong(pointer, format!("`{root}` is not known here."), hint);
                None
            }
        }
    }

    fn param(
        &mut self,
        path: &Path,
        scope: &Scope,
        pointer: &str,
        absence: Absence,
    ) -> Option<(Form, usize)> {
        let Some(name) = path.first() else {
            let all = self
                .plan
                .params
                .iter()
                .map(|(name, param)| (name.clone(), Some(Form::of(param.schema(), false))));
            return Some((Form::Members(all.collect()), 0));
        };
        let Some((_, param)) = self.plan.params.iter().find(|(known, _)| known == name) else {
            let known: Vec<String> = self.plan.params.iter().map(|(name, _)| name.clone()).collect();
            self.wrong(pointer, format!("There is no parameter `{name}`."), closest(name, &known));
            return None;
        };
        let form = Form::of(param.schema(), false);
        let there = param.required || param.default.is_some() || scope.is_present(path);
        self.params.insert(name.to_owned());
        if absence == Absence::Wrong && !there {
            self.may_lack(path, "a run need not be given it", pointer);
        }
        Some((form, 1))
    }

    fn of_step(
        &mut self,
        path: &Path,
        scope: &Scope,
        pointer: &str,
        absence: Absence,
    ) -> Option<(Form, usize)> {
        let Some(id) = path.first() else {
            self.wrong(pointer, "`steps` alone is no value.", Some("Write `steps.ID.output`.".to_owned()));
            return None;
        };
        let Some(seen) = scope.steps.get(id) else {
            if self.plan.loops.contains_key(id) {
                let hint = "Only steps that have run before can be used; of a loop only its whole output.";
                self.wrong(pointer, format!("The step `{id}` has not run here yet."), Some(hint.to_owned()));
            } else {
                let known: Vec<String> = self.plan.loops.keys().cloned().collect();
                self.wrong(pointer, format!("There is no step `{id}`."), closest(id, &known));
            }
            return None;
        };
        let seen = seen.clone();
        let Some(Part::Name(what)) = path.parts.get(1) else {
            let hint = format!("Write `steps.{id}.output`, `.status` or `.error`.");
            self.wrong(pointer, format!("`{path}` alone is no value."), Some(hint));
            return None;
        };
        let sure = absence == Absence::Fine || scope.is_present(path);
        match what.as_str() {
            "status" => Some((Form::of(json!({"type": "string"}), true), 2)),
            "output" => {
                if let Some(why) = seen.lacks.filter(|_| !sure) {
                    self.may_lack(path, why, pointer);
                }
                seen.form.map(|form| (form, 2))
            }
            "error" => {
                if !sure {
                    self.may_lack(path, "a step that did not fail has no error", pointer);
                }
                Some((Form::of(error_schema(), true), 2))
            }
            other => {
                let known = ["output", "status", "error"].map(str::to_owned);
                self.wrong(pointer, format!("A step has no `{other}`."), closest(other, &known));
                None
            }
        }
    }

    fn may_lack(&mut self, path: &Path, why: &str, pointer: &str) {
        let hint = format!("Ask exists({path}) in an `if`, or write default({path}, …).");
        self.wrong(pointer, format!("`{path}` may not be there: {why}."), Some(hint));
    }
}

fn error_schema() -> Value {
    let text = json!({"type": "string"});
    json!({"type": "object", "properties": {"kind": text, "message": text, "hint": text, "step": text}})
}

fn closest(name: &str, known: &[String]) -> Option<String> {
    match nearest(name, known.iter().map(String::as_str)) {
        Some(close) => Some(format!("Did you mean `{close}`?")),
        None if known.is_empty() => None,
        None => {
            Some(format!("There are: {}.", known.iter().take(20).cloned().collect::<Vec<_>>().join(", ")))
        }
    }
}
