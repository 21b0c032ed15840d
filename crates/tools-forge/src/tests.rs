//! Tests that span several modules, against fake forges.

mod github_pull_request;
mod github_refusals;
mod gitlab_openapi;
mod gitlab_request;
mod token_leaks;
mod tool_schemas;
