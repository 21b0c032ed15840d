//! Runs on a real hub and real files, with scripted tools and a store that can fail at any write.

#![expect(clippy::disallowed_methods, reason = "tests make their own files")]

mod bypass_routes;
mod crashes;
mod execution;
mod resume;
mod run_limits;
mod workflow_fixture;
