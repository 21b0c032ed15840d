//! Runs on a real hub and real files, with tools that do as they are told and a store that can fail at any note.

#![expect(clippy::disallowed_methods, reason = "tests make their own files")]

mod crashes;
mod execution;
mod resume;
mod run_limits;
mod workflow_fixture;
