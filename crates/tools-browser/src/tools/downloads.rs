//! `browser_downloads`.

use crate::browser_sessions::BrowserSessions;
use crate::engine::{Download, DownloadState};
use crate::{browser_defaults, sanitize};
use octo_toolkit::fs::{Write, WriteOptions};
use octo_toolkit::{CallContext, Chromium, Effect, Example, Fs, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Lists what pages have sent as files, or saves one of them into the workspace, waiting for its end; fails when the file exists
/// already or the download was cancelled.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The download to save; without it they are listed.
    #[serde(default)]
    id: Option<String>,
    /// New file in the workspace to save it as.
    #[serde(default)]
    path: Option<WorkPath>,
    /// Most milliseconds to wait for its end.
    #[serde(default = "browser_defaults::default_navigation_timeout_ms")]
    timeout_ms: u64,
    /// The session, when it has a name.
    #[serde(default)]
    session: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The downloads, the newest last.
    downloads: Vec<DownloadInfo>,
    /// Where it was saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    saved: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct DownloadInfo {
    /// Its id.
    id: String,
    /// Name that the server gave it.
    name: String,
    /// Where it came from.
    url: String,
    /// Bytes so far.
    bytes: u64,
    /// running, complete or cancelled.
    state: &'static str,
}

impl From<Download> for DownloadInfo {
    fn from(download: Download) -> Self {
        let state = match download.state {
            DownloadState::Running => "running",
            DownloadState::Complete => "complete",
            DownloadState::Cancelled => "cancelled",
        };
        let name = sanitize::truncate(&sanitize::single_line(&download.name), 150);
        let url = sanitize::truncate(&sanitize::single_line(&download.url), 300);
        Self { id: download.id, name, url, bytes: download.bytes, state }
    }
}

pub struct Downloads(pub BrowserSessions);

impl Tool for Downloads {
    const NAME: &'static str = "browser_downloads";
    const TITLE: &'static str = "List or save downloads";
    const EFFECT: Effect = Effect::writes().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = (Chromium, Fs<Write>);

    fn examples() -> Vec<Example> {
        vec![Example::new("What was downloaded", json!({}))]
    }

    async fn run(&self, input: Input, grants: Self::Grants, cx: &CallContext) -> Result<Output, ToolError> {
        let (chromium, fs) = grants;
        let active = self.0.open(&chromium, input.session.as_deref(), cx).await?;
        let (id, path) = match (input.id, input.path) {
            (Some(id), Some(path)) => (id, path),
            (None, None) => {
                let downloads = active.session.downloads().into_iter().map(DownloadInfo::from).collect();
                return Ok(Output { downloads, saved: None });
            }
            _ => {
                return Err(ToolError::invalid("id and path belong together.")
                    .hint("Give both to save a download, or none to list them."));
            }
        };
        // Before the file leaves its quarantine: a place that cannot be had must not cost the download.
        let place = fs.place(&path)?;
        let is_new_path = fs.clone().run(move |fs| Ok(fs.stat(&place).is_err())).await?;
        if !is_new_path {
            return Err(ToolError::new(octo_toolkit::Kind::Conflict, "There is such a file already.")
                .hint("Give another path."));
        }
        let (download, bytes) =
            active.session.take_download(&id, browser_defaults::clamp_timeout(input.timeout_ms, cx)).await?;
        let saved = fs
            .run(move |fs| {
                let place = fs.place(&path)?;
                let options = WriteOptions { create_new: true, mkdirs: true, ..WriteOptions::default() };
                fs.write(&place, &bytes, &options)?;
                Ok(place.display())
            })
            .await?;
        Ok(Output { downloads: vec![DownloadInfo::from(download)], saved: Some(saved) })
    }
}
