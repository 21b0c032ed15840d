//! Comments, threads on lines of the diff, and reviews.

use super::api_types::{self, User};
use super::github_api::PullRequestFetch;
use crate::byte_budget::truncate_bytes;
use octo_toolkit::ToolError;
use octo_toolkit::hidden_text::strip_hidden_owned;
use schemars::JsonSchema;
use serde::Serialize;

/// Maximum comments of each kind: ten pages.
const MAX_COMMENTS: u64 = 1_000;
/// Maximum returned replies per thread.
const MAX_REPLIES: usize = 30;
/// Minimum returned bytes of a reply.
const MIN_REPLY_BYTES: usize = 200;

/// A comment, or the start of a thread on a line.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Comment {
    /// Author.
    author: String,
    /// Time in UTC.
    created_at: String,
    /// Text in Markdown; untrusted.
    body: String,
    /// Whether the text is truncated; use a larger max_bytes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
    /// File of the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// Line of the thread in the current file; if outdated, in the file at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    /// Whether the line has changed since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    outdated: bool,
    /// Replies of the thread, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    replies: Vec<Reply>,
    /// Number of omitted replies.
    #[serde(default, skip_serializing_if = "is_zero")]
    more_replies: usize,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Reply {
    /// Author.
    author: String,
    /// Time in UTC.
    created_at: String,
    /// Text in Markdown; untrusted.
    body: String,
    /// Whether the text is truncated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Review {
    /// Reviewer.
    author: String,
    /// APPROVED, CHANGES_REQUESTED, COMMENTED, DISMISSED or PENDING.
    state: String,
    /// Text in Markdown; untrusted.
    body: String,
    /// Whether the text is truncated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
    /// Time in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    submitted_at: Option<String>,
}

/// Comments, oldest first; for one file, only its threads. `longest` limits each text.
pub async fn comments(
    errand: &PullRequestFetch<'_>,
    pull: &api_types::PullRequestBody,
    file: Option<&str>,
    longest: usize,
    removed: &mut usize,
) -> Result<Vec<Comment>, ToolError> {
    let number = pull.number.to_string();
    let on_whole = if file.is_none() { pull.comments.min(MAX_COMMENTS) } else { 0 };
    let (issue, lines) = (["issues", number.as_str(), "comments"], ["pulls", number.as_str(), "comments"]);
    let (issue, lines) = tokio::try_join!(
        errand.fetch_counted::<api_types::Comment>(&issue, on_whole),
        errand.fetch_counted::<api_types::Comment>(&lines, pull.review_comments.min(MAX_COMMENTS)),
    )?;
    let mut all = issue;
    all.extend(lines.into_iter().filter(|line| file.is_none_or(|file| line.path.as_deref() == Some(file))));
    Ok(threads(all, longest, removed))
}

pub async fn reviews(
    errand: &PullRequestFetch<'_>,
    pull: &api_types::PullRequestBody,
    longest: usize,
    removed: &mut usize,
) -> Result<(Vec<Review>, bool), ToolError> {
    let (pages, is_more) =
        errand.pages::<Vec<api_types::Review>>(&["pulls", &pull.number.to_string(), "reviews"]).await?;
    // A comment on a line also creates a review without text; the thread covers it.
    let told = pages.into_iter().flatten().filter(|review| {
        review.state != "COMMENTED" || review.body.as_deref().is_some_and(|body| !body.trim().is_empty())
    });
    let told = told.map(|review| {
        let (body, is_cut) =
            truncate_bytes(strip_hidden_owned(review.body.unwrap_or_default(), removed), longest);
        let author = login(review.user, removed);
        let state = strip_hidden_owned(review.state, removed);
        Review { author, state, body, cut: is_cut, submitted_at: review.submitted_at }
    });
    Ok((told.collect(), is_more))
}

/// Comments with their replies, oldest thread first. A reply whose parent was deleted starts a thread.
fn threads(mut all: Vec<api_types::Comment>, longest: usize, removed: &mut usize) -> Vec<Comment> {
    all.sort_by(|a, b| a.created_at.cmp(&b.created_at));
    let (mut threads, mut roots): (Vec<Comment>, Vec<u64>) = (Vec::new(), Vec::new());
    for one in all {
        let root = one.in_reply_to_id.and_then(|id| roots.iter().position(|root| *root == id));
        let body = strip_hidden_owned(one.body.unwrap_or_default(), removed);
        let author = login(one.user, removed);
        if let Some(thread) = root.and_then(|at| threads.get_mut(at)) {
            thread.answer(author, one.created_at, body, longest);
            continue;
        }
        let (body, is_cut) = truncate_bytes(body, longest);
        let of_file = one.subject_type.as_deref() == Some("file");
        roots.push(if one.path.is_some() { one.in_reply_to_id.unwrap_or(one.id) } else { 0 });
        threads.push(Comment {
            author,
            created_at: one.created_at,
            body,
            cut: is_cut,
            outdated: one.path.is_some() && one.line.is_none() && !of_file,
            line: one.line.or(one.original_line),
            path: one.path.map(|path| strip_hidden_owned(path, removed)),
            replies: Vec::new(),
            more_replies: 0,
        });
    }
    threads
}

impl Comment {
    /// Adds a reply; all replies together are limited to little more than one text.
    fn answer(&mut self, author: String, created_at: String, body: String, longest: usize) {
        if self.replies.len() >= MAX_REPLIES {
            self.more_replies += 1;
            return;
        }
        let used: usize = self.replies.iter().map(|reply| reply.body.len()).sum();
        let (body, is_cut) =
            truncate_bytes(body, longest.saturating_sub(used).max(MIN_REPLY_BYTES.min(longest)));
        self.replies.push(Reply { author, created_at, body, cut: is_cut });
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// GitHub attributes actions of deleted users to `ghost`.
pub fn login(user: Option<User>, removed: &mut usize) -> String {
    user.map_or_else(|| "ghost".to_owned(), |user| strip_hidden_owned(user.login, removed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_stand_under_what_they_answer() {
        let all = json!([
            {"id": 3, "in_reply_to_id": 1, "user": {"login": "bea"}, "body": "fixed", "created_at": "2026-01-03", "path": "a.rs", "line": 4},
            {"id": 1, "user": {"login": "al"}, "body": "why?", "created_at": "2026-01-01", "path": "a.rs", "line": 4},
            {"id": 9, "user": null, "body": "nice\u{200b}", "created_at": "2026-01-02"},
            {"id": 5, "in_reply_to_id": 4, "user": {"login": "al"}, "body": "orphan", "created_at": "2026-01-04", "path": "b.rs", "original_line": 7},
            {"id": 6, "in_reply_to_id": 4, "user": {"login": "al"}, "body": "second orphan", "created_at": "2026-01-05", "path": "b.rs"},
        ]);
        let mut removed = 0;
        let threads = threads(serde_json::from_value(all).unwrap(), 6, &mut removed);
        let told = serde_json::to_value(&threads).unwrap();
        assert_eq!(removed, 1);
        assert_eq!(
            told,
            json!([
                {"author": "al", "created_at": "2026-01-01", "body": "why?", "path": "a.rs", "line": 4,
                 "replies": [{"author": "bea", "created_at": "2026-01-03", "body": "fixed"}]},
                {"author": "ghost", "created_at": "2026-01-02", "body": "nice"},
                {"author": "al", "created_at": "2026-01-04", "body": "orphan", "path": "b.rs", "line": 7, "outdated": true,
                 "replies": [{"author": "al", "created_at": "2026-01-05", "body": "second", "cut": true}]},
            ])
        );
    }
}
