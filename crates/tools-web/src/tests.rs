//! Tests across modules.

mod fetch_tools;
mod hostile_bodies;
mod markdown_examples;
mod mutated_pages;
