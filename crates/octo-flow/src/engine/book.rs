//! What has become of every step so far. What is noted here is durable before the note returns.

use super::Further;
use super::stop::{Failure, Stop};
use crate::plan::Plan;
use octo_hub::{RunLease, StoredRun, StoredStep};
use octo_model::{Json, Kind, ToolError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What all outputs of a run may have together.
const MOST_BYTES: usize = 64 << 20;
/// Steps of a run, each item of a loop counted.
const MOST_STEPS: usize = 10_000;

/// How decisions stand among the attempts.
const SKIPPED: &str = "skipped";
const REDO: &str = "redo";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Started,
    /// It failed and will be tried again.
    Retrying,
    Done,
    Failed,
    /// It was started, and nobody knows what became of it.
    Interrupted,
    Skipped,
}

impl Status {
    const ALL: [Self; 6] =
        [Self::Started, Self::Retrying, Self::Done, Self::Failed, Self::Interrupted, Self::Skipped];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Retrying => "retrying",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Skipped => "skipped",
        }
    }
}

/// One try. Of arguments only the names are told.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Attempt {
    pub started: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// `done`, `failed` or `interrupted`, nothing while it goes on; or `skipped` or `redo`, as somebody has decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The id of the call in the audit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct Record {
    pub status: Status,
    pub output: Option<Arc<Value>>,
    pub error: Option<Value>,
    pub attempts: Vec<Attempt>,
    /// What its output takes.
    bytes: usize,
}

#[derive(Default)]
pub struct Book(Mutex<Pages>);

#[derive(Default)]
struct Pages {
    records: HashMap<String, Record>,
    /// Keys in the order in which they came.
    order: Vec<String>,
    bytes: usize,
}

impl Book {
    /// The book of a run that was begun before.
    pub fn load(run: &StoredRun) -> Result<Self, ToolError> {
        let mut pages = Pages::default();
        for step in &run.steps {
            let unreadable = |error: serde_json::Error| ToolError::internal(error);
            let status = Status::ALL.into_iter().find(|known| known.as_str() == step.status);
            let output: Option<Value> = step.output.as_ref().map(Json::to).transpose().map_err(unreadable)?;
            let bytes = step.output.as_ref().map_or(0, |output| output.bytes().len());
            pages.bytes += bytes;
            let record = Record {
                status: status.ok_or_else(|| ToolError::internal("a step of an unknown status"))?,
                output: output.map(Arc::new),
                error: step.error.as_ref().map(Json::to).transpose().map_err(unreadable)?,
                attempts: step.attempts.to().map_err(unreadable)?,
                bytes,
            };
            pages.order.push(step.key.clone());
            pages.records.insert(step.key.clone(), record);
        }
        Ok(Self(Mutex::new(pages)))
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn status(&self, key: &str) -> Option<Status> {
        self.pages().records.get(key).map(|record| record.status)
    }

    pub fn output(&self, key: &str) -> Option<Arc<Value>> {
        self.pages().records.get(key).and_then(|record| record.output.clone())
    }

    pub fn error(&self, key: &str) -> Option<Value> {
        self.pages().records.get(key).and_then(|record| record.error.clone())
    }

    pub fn failure(&self, key: &str) -> Failure {
        Failure::from_value(key, &self.error(key).unwrap_or_default())
    }

    /// How often it failed since it was last decided about.
    pub fn failures(&self, key: &str) -> u32 {
        let pages = self.pages();
        let attempts = pages.records.get(key).map(|record| record.attempts.as_slice()).unwrap_or_default();
        let failed = |attempt: &&Attempt| attempt.outcome.as_deref() == Some("failed");
        // The one that has just ended is not closed yet.
        let open = |attempt: &&Attempt| attempt.outcome.is_none();
        attempts.iter().rev().skip_while(open).take_while(failed).count() as u32
    }

    /// Everything so far, in the order in which it came.
    pub fn all(&self) -> Vec<(String, Record)> {
        let pages = self.pages();
        let of = |key: &String| pages.records.get(key).map(|record| (key.clone(), record.clone()));
        pages.order.iter().filter_map(of).collect()
    }

    /// How many calls are behind us.
    pub fn finished(&self, plan: &Plan) -> u64 {
        let over = |record: &Record| matches!(record.status, Status::Done | Status::Failed | Status::Skipped);
        let pages = self.pages();
        pages.records.iter().filter(|(key, record)| over(record) && plan.is_call(key)).count() as u64
    }

    /// Whether an output of this size still fits.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.pages().bytes.saturating_add(bytes) <= MOST_BYTES
    }

    /// Changes a step's record and keeps it; returns when that is durable.
    pub async fn note(
        &self,
        key: &str,
        pen: &dyn RunLease,
        change: impl FnOnce(&mut Record),
    ) -> Result<(), Stop> {
        let kept = {
            let mut pages = self.pages();
            if !pages.records.contains_key(key) {
                if pages.order.len() >= MOST_STEPS {
                    let message =
                        format!("A run has at most {MOST_STEPS} steps, each item of a loop counted.");
                    return Err(Stop::Failed(Failure::new(key, Kind::TooLarge.as_str(), message)));
                }
                pages.order.push(key.to_owned());
            }
            let record = pages.records.entry(key.to_owned()).or_insert(Record {
                status: Status::Started,
                output: None,
                error: None,
                attempts: Vec::new(),
                bytes: 0,
            });
            change(record);
            let kept = record.kept(key);
            let before = record.bytes;
            record.bytes = kept.output.as_ref().map_or(0, |output| output.bytes().len());
            let after = record.bytes;
            pages.bytes = pages.bytes.saturating_sub(before) + after;
            kept
        };
        pen.step(kept).await.map_err(Stop::Broken)
    }

    /// What a person has decided about steps that failed or were cut off.
    pub async fn decide(
        &self,
        plan: &Plan,
        further: &Further,
        pen: &dyn RunLease,
        now: &str,
    ) -> Result<(), ToolError> {
        let redo = further.redo.iter().map(|key| (key, Status::Retrying));
        let all: Vec<(&String, Status)> =
            redo.chain(further.skip.iter().map(|key| (key, Status::Done))).collect();
        if let Some(both) = further.redo.iter().find(|key| further.skip.contains(key)) {
            return Err(ToolError::invalid(format!("`{both}` is to be done again and to be skipped."))
                .hint("Give it in one of redo and skip."));
        }
        // All of them can be decided about, or none is.
        for (key, _) in &all {
            self.undecided(plan, key)?;
        }
        for (key, status) in all {
            let word = if status == Status::Done { SKIPPED } else { REDO };
            let noted = self.note(key, pen, |record| {
                record.close("interrupted", None);
                record.attempts.push(Attempt {
                    started: now.to_owned(),
                    outcome: Some(word.to_owned()),
                    ..Attempt::default()
                });
                record.status = status;
                record.error = None;
            });
            if let Err(Stop::Broken(error)) = noted.await {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Fails unless the step failed or was cut off.
    fn undecided(&self, plan: &Plan, key: &str) -> Result<(), ToolError> {
        if !plan.is_call(key) {
            return Err(ToolError::invalid(format!("`{key}` is no step that calls something."))
                .hint("Name the step inside of it, with its place in each loop: `fetch[3]`."));
        }
        let known = self.status(key);
        if matches!(known, Some(Status::Started | Status::Failed | Status::Interrupted)) {
            return Ok(());
        }
        let said = known.map_or("has not begun".to_owned(), |status| format!("is {}", status.as_str()));
        Err(ToolError::new(Kind::Conflict, format!("The step `{key}` {said}."))
            .hint("Only a step that failed or was cut off can be done again or skipped."))
    }
}

impl Record {
    /// Closes an attempt that is still open.
    pub fn close(&mut self, outcome: &str, change: Option<&dyn Fn(&mut Attempt)>) {
        if let Some(last) = self.attempts.last_mut().filter(|last| last.outcome.is_none()) {
            last.outcome = Some(outcome.to_owned());
            if let Some(change) = change {
                change(last);
            }
        }
    }

    fn kept(&self, key: &str) -> StoredStep {
        StoredStep {
            key: key.to_owned(),
            status: self.status.as_str().to_owned(),
            output: self.output.as_deref().map(Json::of),
            error: self.error.as_ref().map(Json::of),
            attempts: Json::of(&self.attempts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_toolkit::BoxFuture;

    struct Nowhere;

    impl RunLease for Nowhere {
        fn id(&self) -> &str {
            "w_"
        }

        fn step(&self, _: StoredStep) -> BoxFuture<'_, Result<(), ToolError>> {
            Box::pin(async { Ok(()) })
        }

        fn status(
            &self,
            _: octo_hub::RunStatus,
            _: Option<Json>,
            _: Option<Json>,
        ) -> BoxFuture<'_, Result<(), ToolError>> {
            Box::pin(async { Ok(()) })
        }
    }

    #[tokio::test]
    async fn all_outputs_together_have_a_bound_and_a_new_one_takes_the_place_of_the_old() {
        let book = Book::default();
        let put = async |key: &str, bytes: usize| {
            let output = Arc::new(Value::String("x".repeat(bytes)));
            book.note(key, &Nowhere, |record| record.output = Some(output)).await.unwrap();
        };
        put("a", 30 << 20).await;
        put("a", 30 << 20).await;
        assert!(book.has_room(30 << 20));
        put("b", 30 << 20).await;
        assert!(book.has_room(3 << 20) && !book.has_room(5 << 20));
        put("a", 0).await;
        assert!(book.has_room(30 << 20));
    }

    #[tokio::test]
    async fn a_run_has_so_many_steps_and_no_more() {
        let book = Book::default();
        for at in 0..MOST_STEPS {
            book.note(&at.to_string(), &Nowhere, |_| ()).await.unwrap();
        }
        let refused = book.note("more", &Nowhere, |_| ()).await;
        assert!(matches!(refused, Err(Stop::Failed(failure)) if failure.kind == "too_large"));
        assert!(book.note("7", &Nowhere, |_| ()).await.is_ok());
    }
}
