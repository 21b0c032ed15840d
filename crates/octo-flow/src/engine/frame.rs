//! Where in its loops a run is, and what expressions see there.

use super::book::Status;
use super::session::Session;
use crate::expr::{Names, Part, Path};
use serde_json::Value;
use std::sync::Arc;

/// The place of a step in the loops around it.
#[derive(Clone, Default)]
pub struct Frame {
    index: Vec<usize>,
    /// The steps whose loops these are.
    loops: Vec<String>,
    vars: Vec<(String, Arc<Value>)>,
}

impl Frame {
    #[must_use]
    pub fn within(&self, id: &str, name: &str, at: usize, item: Value) -> Self {
        let mut inner = self.clone();
        inner.index.push(at);
        inner.loops.push(id.to_owned());
        inner.vars.push((name.to_owned(), Arc::new(item)));
        inner
    }

    /// The name of a step at this place: its id, and where it is in each loop.
    pub fn key(&self, id: &str) -> String {
        keyed(id, &self.index)
    }
}

fn keyed(id: &str, index: &[usize]) -> String {
    index.iter().fold(id.to_owned(), |key, at| format!("{key}[{at}]"))
}

/// What expressions see.
pub struct Sight<'a> {
    pub session: &'a Session,
    pub frame: &'a Frame,
}

impl Names for Sight<'_> {
    fn find(&self, path: &Path) -> Option<(Arc<Value>, usize)> {
        let Frame { index, vars, .. } = self.frame;
        if let Some((_, value)) = vars.iter().rev().find(|(name, _)| *name == path.root) {
            return Some((Arc::clone(value), 0));
        }
        match path.root.as_str() {
            "index" => index.last().map(|at| (Arc::new(Value::from(*at)), 0)),
            "params" => Some((Arc::clone(&self.session.params), 0)),
            "steps" => {
                let (id, Part::Name(what)) = (path.first()?, path.parts.get(1)?) else { return None };
                Some((self.step(id, what)?, 2))
            }
            _ => None,
        }
    }
}

impl Sight<'_> {
    fn step(&self, id: &str, what: &str) -> Option<Arc<Value>> {
        let Frame { index, loops, .. } = self.frame;
        let plan = &self.session.plan;
        // A step's own loop counts for whoever is in it, such as the steps that mend its failure.
        let own = usize::from(loops.iter().any(|known| known == id));
        let place = index.get(..plan.loops.get(id)? + own)?;
        let key = keyed(id, place);
        let book = &self.session.book;
        match what {
            "status" => Some(Arc::new(book.status(&key).map_or("skipped", |status| status.as_str()).into())),
            "error" => book.error(&key).map(Arc::new),
            "output" => book.output(&key).or_else(|| {
                let step = plan.step(id).filter(|step| step.each.is_none())?;
                self.session.members(step, place).map(Arc::new)
            }),
            _ => None,
        }
    }
}

impl Session {
    /// The outputs of the steps in a step, by their ids. Kept nowhere, since each of them is.
    pub fn members(&self, step: &crate::plan::Step, place: &[usize]) -> Option<Value> {
        let inner = step.act.inner();
        if inner.is_empty() {
            return None;
        }
        let outputs = inner.into_iter().flatten().filter_map(|step| {
            let output = self.book.output(&keyed(&step.id, place)).map(|output| (*output).clone());
            let output = output.or_else(|| self.members(step, place).filter(|_| step.each.is_none()))?;
            Some((step.id.clone(), output))
        });
        Some(Value::Object(outputs.collect()))
    }

    /// The output of one item of a loop.
    pub fn item_output(&self, step: &crate::plan::Step, frame: &Frame) -> Value {
        let key = frame.key(&step.id);
        if !matches!(self.book.status(&key), Some(Status::Done)) {
            return Value::Null;
        }
        let output = self.book.output(&key).map(|output| (*output).clone());
        output.or_else(|| self.members(step, &frame.index)).unwrap_or_default()
    }
}
