//! Tests that go through more than one file.

mod fetch_tools;
mod hostile_bodies;
mod markdown_examples;
mod mutated_pages;
