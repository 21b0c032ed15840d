//! Type inference for expressions, and resolution of their paths.

use super::value_type::{Lookup, ValueType, json_type_of};
use super::{Checker, Scope};
use crate::expr::{Expr, ExprPath, PathPart};
use octo_model::nearest;
use serde_json::{Value, json};

/// Whether a path may be absent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IfMissing {
    Error,
    Allowed,
}

impl Checker<'_> {
    /// Checks an expression and infers the type of its value.
    pub(super) fn infer_type(&mut self, expr: &Expr, scope: &Scope, pointer: &str) -> Option<ValueType> {
        let typed = |kind: &str| Some(ValueType::from_schema(json!({"type": kind}), true));
        match expr {
            Expr::Literal(value) => typed(json_type_of(value)),
            Expr::List(items) => {
                items.iter().for_each(|item| {
                    self.infer_type(item, scope, pointer);
                });
                Some(ValueType::List(None))
            }
            Expr::Path(path) => self.resolve_path(path, scope, pointer, IfMissing::Error),
            Expr::Exists(path) => {
                self.resolve_path(path, scope, pointer, IfMissing::Allowed);
                typed("boolean")
            }
            Expr::Not(inner) => {
                self.check_condition(inner, scope, pointer);
                typed("boolean")
            }
            Expr::And(left, right) => {
                self.check_condition(left, scope, pointer);
                let mut then = scope.clone();
                then.assume_true(left);
                self.check_condition(right, &then, pointer);
                typed("boolean")
            }
            Expr::Or(left, right) => {
                self.check_condition(left, scope, pointer);
                let mut then = scope.clone();
                then.assume_false(left);
                self.check_condition(right, &then, pointer);
                typed("boolean")
            }
            Expr::Compare(_, left, right) | Expr::Contains(left, right) => {
                self.infer_type(left, scope, pointer);
                self.infer_type(right, scope, pointer);
                typed("boolean")
            }
            Expr::Default(value, other) => self.infer_default(value, other, scope, pointer),
            Expr::Length(inner) => {
                self.infer_type(inner, scope, pointer);
                typed("integer")
            }
            Expr::Join(list, between) => {
                self.infer_type(list, scope, pointer);
                self.infer_type(between, scope, pointer);
                typed("string")
            }
            Expr::Lines(inner) => {
                self.infer_type(inner, scope, pointer);
                Some(ValueType::List(typed("string").map(Box::new)))
            }
        }
    }

    fn infer_default(
        &mut self,
        value: &Expr,
        other: &Expr,
        scope: &Scope,
        pointer: &str,
    ) -> Option<ValueType> {
        let value = match value {
            Expr::Path(path) => self.resolve_path(path, scope, pointer, IfMissing::Allowed),
            other => self.infer_type(other, scope, pointer),
        };
        let other = self.infer_type(other, scope, pointer);
        // Either may be the value; only the types are known then.
        let mut kinds = value.as_ref().and_then(ValueType::json_types)?;
        kinds.extend(other.as_ref().and_then(ValueType::json_types)?);
        match (value, kinds.as_slice()) {
            (Some(form), [first, rest @ ..]) if rest.iter().all(|kind| kind == first) => Some(form),
            _ => Some(ValueType::from_schema(json!({"type": kinds}), true)),
        }
    }

    /// Follows a path as far as types are known.
    fn resolve_path(
        &mut self,
        path: &ExprPath,
        scope: &Scope,
        pointer: &str,
        absence: IfMissing,
    ) -> Option<ValueType> {
        let (mut form, used) = self.resolve_root(path, scope, pointer, absence)?;
        for (at, part) in path.parts.iter().enumerate().skip(used) {
            form = match form.lookup(part) {
                Lookup::Type(form) => form,
                Lookup::Unknown => return None,
                Lookup::Missing(known) => {
                    let parts = path.parts.get(..=at).unwrap_or_default().to_vec();
                    let told = ExprPath { root: path.root.clone(), parts };
                    let hint = match part {
                        PathPart::Name(name) => suggestion(name, &known),
                        _ => None,
                    };
                    self.error(pointer, format!("`{told}` does not exist."), hint);
                    return None;
                }
            };
            if *part == PathPart::Wildcard {
                let rest = ExprPath { root: String::new(), parts: path.parts.get(at + 1..)?.to_vec() };
                let item = self.resolve_item_path(form, &rest, path, pointer);
                return Some(ValueType::List(item.map(Box::new)));
            }
        }
        Some(form)
    }

    /// Resolves the part after `[*]` for one item.
    fn resolve_item_path(
        &mut self,
        form: ValueType,
        rest: &ExprPath,
        whole: &ExprPath,
        pointer: &str,
    ) -> Option<ValueType> {
        let mut form = form;
        for part in &rest.parts {
            form = match form.lookup(part) {
                Lookup::Type(inner) if *part == PathPart::Wildcard => {
                    return Some(ValueType::List(Some(Box::new(inner))));
                }
                Lookup::Type(inner) => inner,
                Lookup::Unknown => return None,
                Lookup::Missing(known) => {
                    let hint = match part {
                        PathPart::Name(name) => suggestion(name, &known),
                        _ => None,
                    };
                    self.error(pointer, format!("`{whole}` does not exist."), hint);
                    return None;
                }
            };
        }
        Some(form)
    }

    /// Resolves the root of a path, and returns how many parts that used.
    fn resolve_root(
        &mut self,
        path: &ExprPath,
        scope: &Scope,
        pointer: &str,
        absence: IfMissing,
    ) -> Option<(ValueType, usize)> {
        if let Some((_, form)) = scope.vars.iter().rev().find(|(name, _)| *name == path.root) {
            return form.clone().map(|form| (form, 0));
        }
        match path.root.as_str() {
            "params" => self.resolve_param(path, scope, pointer, absence),
            "steps" => self.resolve_step(path, scope, pointer, absence),
            root => {
                let mut known = vec!["params".to_owned(), "steps".to_owned()];
                known.extend(scope.vars.iter().map(|(name, _)| name.clone()));
                let hint = if self.plan.params.iter().any(|(name, _)| name == root) {
                    Some(format!("Write `params.{root}`."))
                } else if self.plan.loop_depth.contains_key(root) {
                    Some(format!("Write `steps.{root}.output`."))
                } else {
                    suggestion(root, &known)
                };
                self.error(pointer, format!("Unknown name `{root}`."), hint);
                None
            }
        }
    }

    fn resolve_param(
        &mut self,
        path: &ExprPath,
        scope: &Scope,
        pointer: &str,
        absence: IfMissing,
    ) -> Option<(ValueType, usize)> {
        let Some(name) = path.first() else {
            let all = self
                .plan
                .params
                .iter()
                .map(|(name, param)| (name.clone(), Some(ValueType::from_schema(param.schema(), false))));
            return Some((ValueType::Object(all.collect()), 0));
        };
        let Some((_, param)) = self.plan.params.iter().find(|(known, _)| known == name) else {
            let known: Vec<String> = self.plan.params.iter().map(|(name, _)| name.clone()).collect();
            self.error(pointer, format!("Unknown parameter `{name}`."), suggestion(name, &known));
            return None;
        };
        let form = ValueType::from_schema(param.schema(), false);
        let there = param.required || param.default.is_some() || scope.is_present(path);
        self.used_params.insert(name.to_owned());
        if absence == IfMissing::Error && !there {
            self.may_be_absent(path, "it is optional", pointer);
        }
        Some((form, 1))
    }

    fn resolve_step(
        &mut self,
        path: &ExprPath,
        scope: &Scope,
        pointer: &str,
        absence: IfMissing,
    ) -> Option<(ValueType, usize)> {
        let Some(id) = path.first() else {
            self.error(pointer, "`steps` alone is not a value.", Some("Write `steps.ID.output`.".to_owned()));
            return None;
        };
        let Some(seen) = scope.steps.get(id) else {
            if self.plan.loop_depth.contains_key(id) {
                let hint = "Only steps that have run before can be used; for a loop only its whole output.";
                self.error(pointer, format!("The step `{id}` has not run here yet."), Some(hint.to_owned()));
            } else {
                let known: Vec<String> = self.plan.loop_depth.keys().cloned().collect();
                self.error(pointer, format!("Unknown step `{id}`."), suggestion(id, &known));
            }
            return None;
        };
        let seen = seen.clone();
        let Some(PathPart::Name(what)) = path.parts.get(1) else {
            let hint = format!("Write `steps.{id}.output`, `.status` or `.error`.");
            self.error(pointer, format!("`{path}` alone is not a value."), Some(hint));
            return None;
        };
        let sure = absence == IfMissing::Allowed || scope.is_present(path);
        match what.as_str() {
            "status" => Some((ValueType::from_schema(json!({"type": "string"}), true), 2)),
            "output" => {
                if let Some(why) = seen.absent_reason.filter(|_| !sure) {
                    self.may_be_absent(path, why, pointer);
                }
                seen.value_type.map(|form| (form, 2))
            }
            "error" => {
                if !sure {
                    self.may_be_absent(path, "a step that did not fail has no error", pointer);
                }
                Some((ValueType::from_schema(error_schema(), true), 2))
            }
            other => {
                let known = ["output", "status", "error"].map(str::to_owned);
                self.error(pointer, format!("A step has no `{other}`."), suggestion(other, &known));
                None
            }
        }
    }

    fn may_be_absent(&mut self, path: &ExprPath, why: &str, pointer: &str) {
        let hint = format!("Check exists({path}) in an `if`, or write default({path}, …).");
        self.error(pointer, format!("`{path}` may be absent: {why}."), Some(hint));
    }
}

fn error_schema() -> Value {
    let text = json!({"type": "string"});
    json!({"type": "object", "properties": {"kind": text, "message": text, "hint": text, "step": text}})
}

fn suggestion(name: &str, known: &[String]) -> Option<String> {
    match nearest(name, known.iter().map(String::as_str)) {
        Some(close) => Some(format!("Did you mean `{close}`?")),
        None if known.is_empty() => None,
        None => {
            Some(format!("Available: {}.", known.iter().take(20).cloned().collect::<Vec<_>>().join(", ")))
        }
    }
}
