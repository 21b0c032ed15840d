//! From step to step: conditions, loops, branches, and what is done about failures.

use super::book::Status;
use super::frame::{Frame, Sight};
use super::session::Session;
use super::stop::{Failure, Stop};
use crate::expr::Fault;
use crate::plan::{Act, Caught, Each, Items, Step};
use futures_util::StreamExt;
use futures_util::future::join_all;
use octo_model::Kind;
use octo_toolkit::BoxFuture;
use serde_json::Value;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// What one loop may go through.
const MOST_ITEMS: usize = 1_000;

impl Session {
    /// Runs steps in their order. `halt` says that something beside them has stopped: what is under way is finished, and
    /// nothing new is begun, so that no call is cut off by the failure of another.
    pub(super) fn list<'a>(
        &'a self,
        steps: &'a [Step],
        frame: Frame,
        halt: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), Stop>> {
        Box::pin(async move {
            for step in steps {
                self.step(step, &frame, halt).await?;
            }
            Ok(())
        })
    }

    async fn step(&self, step: &Step, frame: &Frame, halt: &CancellationToken) -> Result<(), Stop> {
        self.may_go_on(halt)?;
        let key = frame.key(&step.id);
        if let Some(condition) = &step.condition {
            match condition.truth(&Sight { session: self, frame }) {
                Ok(true) => {}
                Ok(false) => return self.skipped(&key).await,
                Err(fault) => {
                    let stop = self.fault(&key, &fault).await;
                    return self.caught(step, frame, halt, Err(stop)).await;
                }
            }
        }
        match &step.each {
            None => {
                let done = self.once(step, frame, halt).await;
                self.caught(step, frame, halt, done).await
            }
            Some(each) => self.looped(step, each, frame, halt).await,
        }
    }

    fn may_go_on(&self, halt: &CancellationToken) -> Result<(), Stop> {
        if self.live.cancel.is_cancelled() {
            return Err(Stop::Cancelled);
        }
        if halt.is_cancelled() { Err(Stop::Halted) } else { Ok(()) }
    }

    async fn skipped(&self, key: &str) -> Result<(), Stop> {
        if matches!(self.book.status(key), Some(Status::Skipped | Status::Done)) {
            return Ok(());
        }
        self.note(key, |record| record.status = Status::Skipped).await?;
        self.advance(key);
        Ok(())
    }

    /// What the step does, once.
    async fn once(&self, step: &Step, frame: &Frame, halt: &CancellationToken) -> Result<(), Stop> {
        let done = match &step.act {
            Act::Tool { .. } | Act::Llm { .. } => return self.call(step, frame).await,
            Act::Fail(message) => return Err(self.fails(step, message, frame).await),
            Act::Group(steps) => self.list(steps, frame.clone(), halt).await,
            Act::Parallel(branches) => {
                let beside = halt.child_token();
                let mut all: Vec<BoxFuture<'_, _>> = Vec::new();
                for steps in branches {
                    all.push(Box::pin(self.branch(steps, frame, &beside)));
                }
                Stop::of_all(join_all(all).await)
            }
        };
        self.ended_within(&frame.key(&step.id), done).await
    }

    async fn branch(&self, steps: &[Step], frame: &Frame, beside: &CancellationToken) -> Result<(), Stop> {
        let done = self.list(steps, frame.clone(), beside).await;
        if done.is_err() {
            beside.cancel();
        }
        done
    }

    /// Notes how the steps in a step have ended, for the trace; what each of them did is noted already.
    async fn ended_within(&self, key: &str, done: Result<(), Stop>) -> Result<(), Stop> {
        let (status, error) = match &done {
            Ok(()) => (Status::Done, None),
            Err(Stop::Failed(failure)) => (Status::Failed, Some(failure.to_value())),
            Err(Stop::Interrupted(failure)) => (Status::Interrupted, Some(failure.to_value())),
            Err(_) => return done,
        };
        self.note(key, |record| {
            record.status = status;
            record.error = error;
        })
        .await?;
        done
    }

    async fn fails(&self, step: &Step, message: &crate::expr::Template, frame: &Frame) -> Stop {
        let key = frame.key(&step.id);
        match message.value(&Sight { session: self, frame }) {
            Err(fault) => self.fault(&key, &fault).await,
            Ok(message) => {
                let text = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
                let failure = Failure::new(&key, "failed", text);
                match self.failed(&key, None, &failure).await {
                    Ok(()) => Stop::Failed(failure),
                    Err(stop) => stop,
                }
            }
        }
    }

    /// What the step says about its failure.
    async fn caught(
        &self,
        step: &Step,
        frame: &Frame,
        halt: &CancellationToken,
        done: Result<(), Stop>,
    ) -> Result<(), Stop> {
        match (done, &step.on_error) {
            (Err(Stop::Failed(_) | Stop::Interrupted(_)), Caught::Continue) => Ok(()),
            (Err(Stop::Failed(_) | Stop::Interrupted(_)), Caught::Steps(steps)) => {
                self.list(steps, frame.clone(), halt).await
            }
            (done, _) => done,
        }
    }

    async fn looped(
        &self,
        step: &Step,
        each: &Each,
        frame: &Frame,
        halt: &CancellationToken,
    ) -> Result<(), Stop> {
        let key = frame.key(&step.id);
        let items = match self.items(each, frame) {
            Ok(items) => items,
            // What the step says about failures is about its items, and there are none.
            Err(fault) => return Err(self.fault(&key, &fault).await),
        };
        self.expect(items.len() * usize::from(step.act.is_call()));
        let frames: Vec<Frame> = items
            .into_iter()
            .enumerate()
            .map(|(at, item)| frame.within(&step.id, &each.name, at, item))
            .collect();
        let beside = halt.child_token();
        let mut all: Vec<BoxFuture<'_, _>> = Vec::new();
        for frame in &frames {
            all.push(Box::pin(self.item(step, frame, &beside)));
        }
        let all = futures_util::stream::iter(all).buffer_unordered(each.concurrency);
        let done = Stop::of_all(all.collect::<Vec<_>>().await);
        if done.is_err() {
            return self.ended_within(&key, done).await;
        }
        let outputs: Value = frames.iter().map(|frame| self.item_output(step, frame)).collect();
        let outputs = match self.within(&key, outputs) {
            Ok(outputs) => outputs,
            Err(failure) => {
                self.failed(&key, None, &failure).await?;
                return Err(Stop::Failed(failure));
            }
        };
        self.note(&key, |record| {
            record.status = Status::Done;
            record.error = None;
            record.output = Some(Arc::new(outputs));
        })
        .await
    }

    async fn item(&self, step: &Step, frame: &Frame, beside: &CancellationToken) -> Result<(), Stop> {
        self.may_go_on(beside)?;
        let done = self.once(step, frame, beside).await;
        let done = self.caught(step, frame, beside, done).await;
        if done.is_err() {
            beside.cancel();
        }
        done
    }

    fn items(&self, each: &Each, frame: &Frame) -> Result<Vec<Value>, Fault> {
        let sight = Sight { session: self, frame };
        let value = match &each.items {
            Items::Expr(expr) => expr.value(&sight)?,
            Items::List(template) => template.value(&sight)?,
        };
        match value {
            Value::Array(items) if items.len() <= MOST_ITEMS => Ok(items),
            Value::Array(items) => Err(Fault::Misfit(format!(
                "The list has {} items; a loop goes through {MOST_ITEMS} at most ({}).",
                items.len(),
                Kind::TooLarge.as_str(),
            ))),
            _ => Err(Fault::Misfit("`for_each` needs a list.".to_owned())),
        }
    }
}
