//! A network in which every address of the world is this machine, and nothing leaves: hub and browser run in it, servers
//! that stand for the public internet answer, and whoever connects anywhere else is counted. Nobody may.
//!
//! Each case runs twice: against a hub that allows every address, where it must arrive, so that it is known to be an
//! attack; and against a hub as it comes, where it must not.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and starts the programs that it tests"
)]

#[path = "netns/browsing.rs"]
mod browsing;
#[path = "netns/canaries.rs"]
mod canaries;
#[path = "netns/ground.rs"]
mod ground;
#[path = "netns/hub.rs"]
mod hub;
#[path = "netns/names.rs"]
mod names;
#[path = "netns/reading.rs"]
mod reading;
#[path = "netns/site.rs"]
mod site;
#[path = "netns/spellings.rs"]
mod spellings;

use anyhow::Result;
use ground::{Power, inside};

#[test]
fn every_canary_sees_who_comes_and_nothing_leaves() -> Result<()> {
    inside("every_canary_sees_who_comes_and_nothing_leaves", canaries::are_awake)
}

#[test]
fn no_spelling_of_a_private_address_is_reached() -> Result<()> {
    inside("no_spelling_of_a_private_address_is_reached", reading::spellings)
}

#[test]
fn no_redirect_leads_to_a_private_address() -> Result<()> {
    inside("no_redirect_leads_to_a_private_address", reading::redirects)
}

#[test]
fn no_name_that_changes_its_answer_is_followed_to_a_private_address() -> Result<()> {
    inside("no_name_that_changes_its_answer_is_followed_to_a_private_address", reading::rebinding)
}

#[test]
fn no_page_in_a_browser_with_a_network_of_its_own_reaches_a_private_address() -> Result<()> {
    let test = "no_page_in_a_browser_with_a_network_of_its_own_reaches_a_private_address";
    inside(test, || browsing::pages(Power::Full))
}

#[test]
fn no_page_in_a_browser_on_the_network_of_the_hub_reaches_a_private_address() -> Result<()> {
    let test = "no_page_in_a_browser_on_the_network_of_the_hub_reaches_a_private_address";
    inside(test, || browsing::pages(Power::Little))
}
