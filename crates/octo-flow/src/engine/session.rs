//! One process's work on one run, from where it was to where it stops.

use super::artifacts::Artifacts;
use super::book::{Book, Record};
use super::frame::{Frame, Sight};
use super::stop::{Failure, Stop};
use super::{Asker, Engine, Live};
use crate::plan::Plan;
use octo_hub::{RunLease, RunStatus};
use octo_model::{Json, Kind};
use serde_json::{Map, Value};
use std::sync::Arc;

pub struct Session {
    pub(super) engine: Arc<Engine>,
    pub(super) plan: Plan,
    pub(super) params: Arc<Value>,
    pub(super) pen: Box<dyn RunLease>,
    pub(super) book: Book,
    pub(super) asker: Asker,
    pub(super) artifacts: Artifacts,
    pub(super) live: Arc<Live>,
}

/// Whoever waits is told that the run has ended, even when its task panics.
struct Ended {
    engine: Arc<Engine>,
    live: Arc<Live>,
    id: String,
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.engine.live().remove(&self.id);
        self.live.progress.send_modify(|progress| progress.ended = true);
    }
}

impl Session {
    /// Runs until it is done or cannot go on. The right to write the run is given back before anybody is told.
    pub(super) async fn run(self, id: String) {
        let _ended = Ended { engine: Arc::clone(&self.engine), live: Arc::clone(&self.live), id };
        let session = self;
        // From the start, so that a run that is cut off can be found. The last write says when it is not possible.
        if let Err(error) = session.write_artifacts(RunStatus::Running, None, None).await {
            tracing::debug!(run = session.pen.id(), %error, "the artifacts of a run cannot be written");
        }
        let walked = session.list(&session.plan.steps, Frame::default(), &session.live.halt).await;
        let (status, outputs, error) = match walked {
            Ok(()) => match session.outputs() {
                Ok(outputs) => (RunStatus::Done, Some(outputs), None),
                Err(failure) => (RunStatus::Failed, None, Some(failure)),
            },
            Err(Stop::Failed(failure)) => (RunStatus::Failed, None, Some(failure)),
            Err(Stop::Interrupted(failure)) => (RunStatus::Interrupted, None, Some(failure)),
            Err(Stop::Cancelled) => (RunStatus::Cancelled, None, None),
            // The hub ends: the run goes on when it is asked for.
            Err(Stop::Halted) => (RunStatus::Running, None, None),
            Err(Stop::Broken(error)) => {
                tracing::error!(run = session.pen.id(), detail = error.detail, "a run cannot be kept");
                return session.warn(error.text());
            }
        };
        let error = error.map(|failure| failure.to_value());
        // Before the status, so that a run that is done has its artifacts, however often it was killed.
        if let Err(error) = session.write_artifacts(status, outputs.as_ref(), error.as_ref()).await {
            session.warn(format!("The artifacts could not be written: {}", error.text()));
        }
        let (outputs, error) = (outputs.map(Json::from), error.map(Json::from));
        if let Err(error) = session.pen.status(status, outputs, error).await {
            tracing::error!(run = session.pen.id(), detail = error.detail, "the end of a run was not kept");
            session.warn(error.text());
        }
    }

    async fn write_artifacts(
        &self,
        status: RunStatus,
        outputs: Option<&Value>,
        error: Option<&Value>,
    ) -> Result<(), octo_model::ToolError> {
        let records = self.book.all();
        self.artifacts.write(&self.now(), status, &records, outputs, error).await
    }

    fn outputs(&self) -> Result<Value, Failure> {
        let frame = Frame::default();
        let sight = Sight { session: self, frame: &frame };
        let mut outputs = Map::new();
        for (name, template) in &self.plan.outputs {
            let value = template.value(&sight).map_err(|fault| {
                Failure::new("outputs", Kind::Invalid.as_str(), format!("outputs.{name}: {fault}"))
            })?;
            outputs.insert(name.clone(), value);
        }
        Ok(Value::Object(outputs))
    }

    pub(super) fn now(&self) -> String {
        format!("{:.3}", self.engine.clock.now())
    }

    pub(super) async fn note(&self, key: &str, change: impl FnOnce(&mut Record)) -> Result<(), Stop> {
        self.book.note(key, self.pen.as_ref(), change).await
    }

    /// One more step is behind us.
    pub(super) fn advance(&self, key: &str) {
        self.live.progress.send_modify(|progress| {
            progress.done += 1;
            progress.total = progress.total.max(progress.done);
            key.clone_into(&mut progress.last);
        });
    }

    /// A loop turns out to have so many calls, of which one was counted.
    pub(super) fn expect(&self, calls: usize) {
        let more = calls.saturating_sub(1) as u64;
        self.live.progress.send_modify(|progress| progress.total += more);
    }

    fn warn(&self, text: String) {
        self.live.progress.send_modify(|progress| progress.warnings.push(text));
    }
}
