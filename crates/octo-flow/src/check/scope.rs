//! What an expression can see at its place.

use super::form::Form;
use crate::expr::{Expr, Path};
use crate::plan::Step;
use std::collections::HashMap;

#[derive(Clone, Default)]
pub struct Scope {
    /// The steps that have run before, whatever happened.
    pub steps: HashMap<String, Seen>,
    /// The items of the loops around.
    pub vars: Vec<(String, Option<Form>)>,
    /// Paths that are known to lead to something.
    pub present: Vec<Path>,
}

#[derive(Clone)]
pub struct Seen {
    pub form: Option<Form>,
    /// Why its output may not be there.
    pub lacks: Option<&'static str>,
}

impl Scope {
    pub fn meet(&mut self, id: &str, seen: Seen) {
        self.steps.insert(id.to_owned(), seen);
    }

    /// Takes over the steps of an inner scope; where the inner steps may not have run, neither has any of them.
    pub fn adopt(&mut self, inner: &Scope, lacks: Option<&'static str>) {
        for (id, seen) in &inner.steps {
            let mut seen = seen.clone();
            seen.lacks = seen.lacks.or(lacks);
            self.steps.entry(id.clone()).or_insert(seen);
        }
    }

    /// What a condition that holds says of paths.
    pub fn assume(&mut self, condition: &Expr) {
        match condition {
            Expr::Exists(path) => self.present.push(path.clone()),
            Expr::And(left, right) => {
                self.assume(left);
                self.assume(right);
            }
            Expr::Not(inner) => self.deny(inner),
            _ => {}
        }
    }

    /// What a condition that does not hold says of paths.
    pub fn deny(&mut self, condition: &Expr) {
        match condition {
            Expr::Not(inner) => self.assume(inner),
            Expr::Or(left, right) => {
                self.deny(left);
                self.deny(right);
            }
            _ => {}
        }
    }

    pub fn is_present(&self, path: &Path) -> bool {
        self.present.iter().any(|known| known.root == path.root && path.parts.starts_with(&known.parts))
    }

    /// The outputs of some steps as one object.
    pub fn members<'s>(&self, steps: impl IntoIterator<Item = &'s Step>) -> Form {
        let member =
            |step: &Step| (step.id.clone(), self.steps.get(&step.id).and_then(|seen| seen.form.clone()));
        Form::Members(steps.into_iter().map(member).collect())
    }
}
