//! Tests that go through more than one file, against servers that answer as the forges do.

mod github_pull_request;
mod github_refusals;
mod gitlab_openapi;
mod gitlab_request;
mod token_leaks;
mod tool_schemas;
