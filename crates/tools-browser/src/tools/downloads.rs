//! `browser_downloads`.

use crate::browser_sessions::BrowserSessions;
use crate::engine::{Download, DownloadState};
use crate::{browser_defaults, sanitize};
use octo_toolkit::fs::{Write, WriteOptions};
use octo_toolkit::{CallContext, Chromium, Effect, Example, Fs, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Lists downloads, or saves one of them into the workspace after waiting for its completion; fails if the file already
/// exists or the download was cancelled.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The download to save; omit to list them.
    #[serde(default)]
    id: Option<String>,
    /// New file in the workspace to save it as.
    #[serde(default)]
    path: Option<WorkPath>,
    /// Maximum milliseconds to wait for its completion.
    #[serde(default = "browser_defaults::default_navigation_timeout_ms")]
    timeout_ms: u64,
    /// Session name, if any.
    #[serde(default)]
    session: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The downloads, newest last.
    downloads: Vec<DownloadInfo>,
    /// Path it was saved to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    saved: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct DownloadInfo {
    /// Its id.
    id: String,
    /// File name from the server.
    name: String,
    /// URL of the file.
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
    const KEYWORDS: &'static str = "saved files fetch attachment";
    const REQUESTS: &'static [&'static str] = &[
        "save the invoice that the site just sent me into the workspace",
        "is the export file from the page finished yet",
        "which files has the browser received so far",
        "keep the zip that came after i pressed Export",
        "store the downloaded spreadsheet as data/export.xlsx",
        "wait for the file from the website and put it on disk",
    ];
    const EFFECT: Effect = Effect::writes().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = (Chromium, Fs<Write>);

    fn examples() -> Vec<Example> {
        vec![Example::new("List the downloads", json!({}))]
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
                return Err(ToolError::invalid("id and path must be given together.")
                    .hint("Set both to save a download, or none to list them."));
            }
        };
        // Checked before the file leaves its quarantine: an unusable path must not lose the download.
        let place = fs.place(&path)?;
        let is_new_path = fs.clone().run(move |fs| Ok(fs.stat(&place).is_err())).await?;
        if !is_new_path {
            return Err(ToolError::new(octo_toolkit::Kind::Conflict, "The file already exists.")
                .hint("Use another path."));
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
