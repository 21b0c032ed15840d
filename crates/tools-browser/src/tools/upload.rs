//! `browser_upload`.

use crate::browser_sessions::BrowserSessions;
use crate::browser_sessions::action_outcome::{ActionOutcome, NO_CHANGE};
use crate::browser_sessions::element_target::ElementTarget;
use crate::{browser_defaults, sanitize};
use octo_toolkit::fs::Read;
use octo_toolkit::{CallContext, Chromium, Effect, Example, Fs, Kind, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Maximum bytes of all files of a call.
const MAX_UPLOAD_BYTES: u64 = 20 << 20;
/// Maximum files listed by name.
const MAX_NAMED_FILES: usize = 20;

/// Uploads workspace files into a file field, given by ref or selector, and returns the files it has then and what
/// changed; fails if it is not a file field or a file is not found. Prefer browser_fill_form for other fields.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Ref of the file field.
    #[serde(default, rename = "ref")]
    reference: Option<String>,
    /// CSS selector of the file field.
    #[serde(default)]
    selector: Option<String>,
    /// Workspace files.
    paths: Vec<WorkPath>,
    /// Session name, if any.
    #[serde(default)]
    session: Option<String>,
}

pub struct Upload(pub BrowserSessions);

impl Tool for Upload {
    const NAME: &'static str = "browser_upload";
    const TITLE: &'static str = "Upload files";
    const KEYWORDS: &'static str = "attach file choose form";
    const REQUESTS: &'static [&'static str] = &[
        "attach cv.pdf to the application form",
        "add a photo to the file chooser of the profile page",
        "hand the site my local report.csv for import",
        "choose a file for the input of type file",
        "give two documents from the workspace to the web form",
        "submit the scan through the page's attachment field",
    ];
    const EFFECT: Effect = Effect::writes().open_world();
    type Input = Input;
    type Output = ActionOutcome;
    type Grants = (Chromium, Fs<Read>);

    fn examples() -> Vec<Example> {
        vec![Example::new("One file", json!({"selector": "input[type=file]", "paths": ["notes.txt"]}))]
    }

    async fn run(
        &self,
        input: Input,
        grants: Self::Grants,
        cx: &CallContext,
    ) -> Result<ActionOutcome, ToolError> {
        let (chromium, fs) = grants;
        let paths = input.paths;
        if paths.is_empty() {
            return Err(ToolError::invalid("paths is empty.").hint("Set at least one file."));
        }
        let files = fs.run(move |fs| read_files(fs, &paths)).await?;
        let mut active = self.0.open(&chromium, input.session.as_deref(), cx).await?;
        let target = ElementTarget {
            reference: input.reference.as_deref(),
            selector: input.selector.as_deref(),
            ..ElementTarget::ref_or_selector()
        };
        let node = active
            .find_element(
                target,
                browser_defaults::clamp_timeout(browser_defaults::default_action_timeout_ms(), cx),
            )
            .await?;
        let before = active.baseline().await?;
        let held = active.page.upload(&node, files).await?;
        let mut after = active.outcome(&before).await?;
        let held = held
            .iter()
            .take(MAX_NAMED_FILES)
            .map(|(name, size)| format!("{} ({size} bytes)", sanitize::single_line(name)));
        let held: Vec<String> = held.collect();
        after.events.insert(0, format!("The field now has {}.", held.join(", ")));
        after.changes.take_if(|changes| changes == NO_CHANGE);
        Ok(after)
    }
}

fn read_files(fs: &Fs<Read>, paths: &[WorkPath]) -> Result<Vec<(String, Vec<u8>)>, ToolError> {
    let mut left = MAX_UPLOAD_BYTES;
    let mut files = Vec::new();
    for path in paths {
        let place = fs.place(path)?;
        let size = fs.stat(&place)?.size;
        left = left.checked_sub(size).ok_or_else(|| {
            ToolError::new(Kind::TooLarge, format!("The files have more than {MAX_UPLOAD_BYTES} bytes."))
                .hint("Upload fewer at once.")
        })?;
        let (bytes, _) = fs.read(&place, size)?;
        let name = place.relative().file_name().map(|name| name.to_string_lossy().into_owned());
        files.push((name.unwrap_or_default(), bytes));
    }
    Ok(files)
}
