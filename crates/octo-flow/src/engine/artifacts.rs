//! Artifacts of a run in the workspace: its trace and the outputs of its steps.

use super::journal::StepRecord;
use octo_grants::fs::{Change, Fs, WorkPath, Write, WriteOptions};
use octo_model::ToolError;
use octo_ports::{RunStatus, StoredRun};
use serde_json::{Value, json};

/// The directory of all runs, in the first root.
pub const ARTIFACTS_DIR: &str = "artifacts";

pub struct Artifacts {
    fs: Fs<Write>,
    id: String,
    /// The header of the trace.
    run_header: Value,
}

impl Artifacts {
    pub fn new(fs: Fs<Write>, run: &StoredRun) -> Self {
        let params: Vec<String> = run
            .params
            .members()
            .map(|all| all.iter().map(|(name, _)| name.to_owned()).collect())
            .unwrap_or_default();
        let begun = jiff::Timestamp::from_microsecond(run.begun).unwrap_or_default();
        let run_header = json!({
            "run_id": run.id,
            "workflow": run.name,
            "path": run.path,
            "sha256": run.hash,
            "params": params,
            "begun": format!("{begun:.3}"),
        });
        Self { fs, id: run.id.clone(), run_header }
    }

    /// Writes all files or none. Outputs of single items are in the file of their loop.
    pub async fn write(
        &self,
        now: &str,
        status: RunStatus,
        records: &[(String, StepRecord)],
        outputs: Option<&Value>,
        error: Option<&Value>,
    ) -> Result<(), ToolError> {
        let mut files = vec![("run.json".to_owned(), self.trace(now, status, records, error))];
        files.extend(outputs.map(|outputs| ("outputs.json".to_owned(), outputs.clone())));
        for (key, record) in records.iter().filter(|(key, _)| !key.contains('[')) {
            if let Some(output) = &record.output {
                files.push((format!("steps/{key}.json"), (**output).clone()));
            }
        }
        let id = self.id.clone();
        self.fs
            .run(move |fs| {
                let folder: WorkPath =
                    serde_json::from_value(ARTIFACTS_DIR.into()).map_err(ToolError::internal)?;
                let folder = fs.place(&folder)?.join(id);
                let put = |(name, value): (String, Value)| {
                    let mut bytes = serde_json::to_vec_pretty(&value).map_err(ToolError::internal)?;
                    bytes.push(b'\n');
                    let options = WriteOptions { mkdirs: true, ..WriteOptions::default() };
                    Ok(Change::Put { place: folder.join(name), bytes, mode: None, options })
                };
                let changes = files.into_iter().map(put).collect::<Result<_, ToolError>>()?;
                fs.change(changes).map(drop)
            })
            .await
    }

    fn trace(
        &self,
        now: &str,
        status: RunStatus,
        records: &[(String, StepRecord)],
        error: Option<&Value>,
    ) -> Value {
        let step = |(key, record): &(String, StepRecord)| {
            let mut step = json!({"id": key, "status": record.status.as_str(), "attempts": record.attempts});
            if let (Value::Object(members), Some(error)) = (&mut step, &record.error) {
                members.insert("error".to_owned(), error.clone());
            }
            step
        };
        let mut trace = self.run_header.clone();
        if let Value::Object(members) = &mut trace {
            members.insert("status".to_owned(), status.as_str().into());
            members.insert("written".to_owned(), now.into());
            members.insert("steps".to_owned(), records.iter().map(step).collect());
            if let Some(error) = error {
                members.insert("error".to_owned(), error.clone());
            }
        }
        trace
    }
}
