//! Position of a run in its loops, and the names visible there.

use crate::engine::journal::StepStatus;
use crate::engine::run_executor::RunExecutor;
use crate::expr::{ExprPath, PathPart, Scope};
use serde_json::Value;
use std::sync::Arc;

/// Position of a step in the surrounding loops.
#[derive(Clone, Default)]
pub struct Frame {
    index: Vec<usize>,
    /// The steps of these loops.
    loops: Vec<String>,
    vars: Vec<(String, Arc<Value>)>,
}

impl Frame {
    #[must_use]
    pub fn enter_item(&self, id: &str, name: &str, at: usize, item: Value) -> Self {
        let mut inner = self.clone();
        inner.index.push(at);
        inner.loops.push(id.to_owned());
        inner.vars.push((name.to_owned(), Arc::new(item)));
        inner
    }

    /// The key of a step at this position: its id, with its index in each loop.
    pub fn key(&self, id: &str) -> String {
        indexed_key(id, &self.index)
    }
}

fn indexed_key(id: &str, index: &[usize]) -> String {
    index.iter().fold(id.to_owned(), |key, at| format!("{key}[{at}]"))
}

/// Names visible to expressions.
pub struct RunScope<'a> {
    pub session: &'a RunExecutor,
    pub frame: &'a Frame,
}

impl Scope for RunScope<'_> {
    fn find(&self, path: &ExprPath) -> Option<(Arc<Value>, usize)> {
        let Frame { index, vars, .. } = self.frame;
        if let Some((_, value)) = vars.iter().rev().find(|(name, _)| *name == path.root) {
            return Some((Arc::clone(value), 0));
        }
        match path.root.as_str() {
            "index" => index.last().map(|at| (Arc::new(Value::from(*at)), 0)),
            "params" => Some((Arc::clone(&self.session.params), 0)),
            "steps" => {
                let (id, PathPart::Name(what)) = (path.first()?, path.parts.get(1)?) else { return None };
                Some((self.step_value(id, what)?, 2))
            }
            _ => None,
        }
    }
}

impl RunScope<'_> {
    fn step_value(&self, id: &str, what: &str) -> Option<Arc<Value>> {
        let Frame { index, loops, .. } = self.frame;
        let plan = &self.session.plan;
        // A step's own loop counts for the steps inside it, such as its error handlers.
        let own = usize::from(loops.iter().any(|known| known == id));
        let place = index.get(..plan.loop_depth.get(id)? + own)?;
        let key = indexed_key(id, place);
        let journal = &self.session.journal;
        match what {
            "status" => {
                Some(Arc::new(journal.status(&key).map_or("skipped", |status| status.as_str()).into()))
            }
            "error" => journal.error(&key).map(Arc::new),
            "output" => journal.output(&key).or_else(|| {
                let step = plan.step(id).filter(|step| step.for_each.is_none())?;
                self.session.inner_outputs(step, place).map(Arc::new)
            }),
            _ => None,
        }
    }
}

impl RunExecutor {
    /// The outputs of the nested steps, by id. Not stored, since each of them is.
    pub fn inner_outputs(&self, step: &crate::compiled_workflow::Step, place: &[usize]) -> Option<Value> {
        let inner = step.action.inner();
        if inner.is_empty() {
            return None;
        }
        let outputs = inner.into_iter().flatten().filter_map(|step| {
            let output = self.journal.output(&indexed_key(&step.id, place)).map(|output| (*output).clone());
            let output =
                output.or_else(|| self.inner_outputs(step, place).filter(|_| step.for_each.is_none()))?;
            Some((step.id.clone(), output))
        });
        Some(Value::Object(outputs.collect()))
    }

    /// The output of one item of a loop.
    pub fn item_output(&self, step: &crate::compiled_workflow::Step, frame: &Frame) -> Value {
        let key = frame.key(&step.id);
        if !matches!(self.journal.status(&key), Some(StepStatus::Done)) {
            return Value::Null;
        }
        let output = self.journal.output(&key).map(|output| (*output).clone());
        output.or_else(|| self.inner_outputs(step, &frame.index)).unwrap_or_default()
    }
}
