//! Names that are visible to an expression.

use super::value_type::ValueType;
use crate::compiled_workflow::Step;
use crate::expr::{Expr, ExprPath};
use std::collections::HashMap;

#[derive(Clone, Default)]
pub struct Scope {
    /// Steps that have run before, whatever their outcome.
    pub steps: HashMap<String, StepBinding>,
    /// Items of the surrounding loops.
    pub vars: Vec<(String, Option<ValueType>)>,
    /// Paths that are known to be present.
    pub present: Vec<ExprPath>,
}

#[derive(Clone)]
pub struct StepBinding {
    pub value_type: Option<ValueType>,
    /// Why its output may be absent.
    pub absent_reason: Option<&'static str>,
}

impl Scope {
    pub fn bind(&mut self, id: &str, seen: StepBinding) {
        self.steps.insert(id.to_owned(), seen);
    }

    /// Adds the steps of an inner scope; `lacks` is why they may not have run.
    pub fn merge(&mut self, inner: &Scope, lacks: Option<&'static str>) {
        for (id, seen) in &inner.steps {
            let mut seen = seen.clone();
            seen.absent_reason = seen.absent_reason.or(lacks);
            self.steps.entry(id.clone()).or_insert(seen);
        }
    }

    /// Presence of paths implied by a true condition.
    pub fn assume_true(&mut self, condition: &Expr) {
        match condition {
            Expr::Exists(path) => self.present.push(path.clone()),
            Expr::And(left, right) => {
                self.assume_true(left);
                self.assume_true(right);
            }
            Expr::Not(inner) => self.assume_false(inner),
            _ => {}
        }
    }

    /// Presence of paths implied by a false condition.
    pub fn assume_false(&mut self, condition: &Expr) {
        match condition {
            Expr::Not(inner) => self.assume_true(inner),
            Expr::Or(left, right) => {
                self.assume_false(left);
                self.assume_false(right);
            }
            _ => {}
        }
    }

    pub fn is_present(&self, path: &ExprPath) -> bool {
        self.present.iter().any(|known| known.root == path.root && path.parts.starts_with(&known.parts))
    }

    /// The outputs of some steps as an object.
    pub fn outputs_of<'s>(&self, steps: impl IntoIterator<Item = &'s Step>) -> ValueType {
        let member = |step: &Step| {
            (step.id.clone(), self.steps.get(&step.id).and_then(|seen| seen.value_type.clone()))
        };
        ValueType::Object(steps.into_iter().map(member).collect())
    }
}
