//! Changes: the list of files and the diff, with as few requests as the size of the pull request requires.

use super::api_types::{self, File};
use super::changed_files::{self, ChangedFile};
use super::github_api::{ACCEPT_DIFF, PullRequestFetch};
use octo_toolkit::hidden_text::strip_hidden_owned;
use octo_toolkit::{Kind, ToolError};

/// Maximum files of a diff that GitHub returns as a whole.
const MAX_DIFF_FILES: u64 = 300;
/// Maximum files that GitHub lists.
pub const MAX_LISTED_FILES: u64 = 3_000;

/// Requested part of the changes.
pub struct ChangesQuery<'a> {
    pub files: bool,
    pub diff: bool,
    pub file: Option<&'a str>,
}

#[derive(Default)]
pub struct Changes {
    pub files: Vec<ChangedFile>,
    pub diff: String,
    /// Changed files whose patch GitHub does not return.
    pub without_patch: Vec<String>,
}

/// Reads the changes of a pull request; `removed` counts hidden characters.
pub async fn read(
    errand: &PullRequestFetch<'_>,
    pull: &api_types::PullRequestBody,
    wanted: &ChangesQuery<'_>,
    removed: &mut usize,
) -> Result<Changes, ToolError> {
    if !wanted.files && !wanted.diff {
        return Ok(Changes::default());
    }
    let whole = wanted.diff && wanted.file.is_none() && pull.changed_files <= MAX_DIFF_FILES;
    let (listed, diff) = match (whole, wanted.files) {
        (true, true) => {
            let (listed, diff) = tokio::join!(list(errand, pull), text(errand, pull));
            (Some(listed?), diff?)
        }
        (true, false) => (None, text(errand, pull).await?),
        (false, _) => (Some(list(errand, pull).await?), None),
    };
    // GitHub refuses some diffs although they have few files.
    let listed = match (listed, &diff) {
        (None, None) => Some(list(errand, pull).await?),
        (listed, _) => listed,
    };
    let listed = filter_file(listed.unwrap_or_default(), wanted.file)?;
    let (diff, lacking) = match diff {
        Some(diff) => (diff, Vec::new()),
        None if wanted.diff => (
            changed_files::build_diff(&listed),
            listed.iter().filter(|file| changed_files::lacks_patch(file)).collect(),
        ),
        None => (String::new(), Vec::new()),
    };
    let shown = wanted.files || wanted.file.is_some();
    Ok(Changes {
        without_patch: lacking
            .into_iter()
            .map(|file| strip_hidden_owned(file.filename.clone(), removed))
            .collect(),
        files: listed.iter().filter(|_| shown).map(|file| ChangedFile::new(file, removed)).collect(),
        diff: strip_hidden_owned(diff, removed),
    })
}

async fn list(
    errand: &PullRequestFetch<'_>,
    pull: &api_types::PullRequestBody,
) -> Result<Vec<File>, ToolError> {
    let number = pull.number.to_string();
    errand.fetch_counted(&["pulls", &number, "files"], pull.changed_files.min(MAX_LISTED_FILES)).await
}

/// The diff as GitHub returns it; `None` if it is too large for that.
async fn text(
    errand: &PullRequestFetch<'_>,
    pull: &api_types::PullRequestBody,
) -> Result<Option<String>, ToolError> {
    match errand.get(&["pulls", &pull.number.to_string()], None, ACCEPT_DIFF).await {
        Ok(kept) => Ok(Some(String::from_utf8_lossy(&kept.body).into_owned())),
        Err(error) if error.kind == Kind::TooLarge => Ok(None),
        Err(error) => Err(error),
    }
}

fn filter_file(listed: Vec<File>, file: Option<&str>) -> Result<Vec<File>, ToolError> {
    let Some(path) = file else { return Ok(listed) };
    let total = listed.len();
    let is_it = |file: &File| file.filename == path || file.previous_filename.as_deref() == Some(path);
    let found: Vec<File> = listed.into_iter().filter(is_it).collect();
    if found.is_empty() {
        return Err(ToolError::not_found("This pull request does not change that file.").hint(format!(
            "It changes {total} files; use include=[\"files\"] to list their paths, and pass one exactly as listed."
        )));
    }
    Ok(found)
}
