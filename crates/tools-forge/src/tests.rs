//! Tests that go through more than one file, against servers that answer as the forges do.

mod github;
mod github_refusals;
mod gitlab;
mod gitlab_openapi;
mod logs;
mod schemas;
