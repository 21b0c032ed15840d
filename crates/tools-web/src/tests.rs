//! Tests that go through more than one file.

mod fetching;
mod hostile;
mod markdown;
mod mutated;
