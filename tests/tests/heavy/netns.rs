//! A network namespace in which every address is this machine and nothing leaves: hub and browser run in it, servers
//! stand for the public internet, and connections to any other address are counted. There must be none.
//!
//! Each case runs twice: against a hub that allows every address, where it must arrive, so that it is known to be an
//! attack; and against a hub with default settings, where it must not.

mod address_spellings;
mod browser_attacks;
mod canary_listeners;
mod dns_server;
mod fetch_attacks;
mod namespaces;
mod netns_hub;
mod public_site;

use anyhow::Result;
use namespaces::{HubPrivilege, run_in_namespaces};

#[test]
fn every_canary_sees_who_comes_and_nothing_leaves() -> Result<()> {
    run_in_namespaces("every_canary_sees_who_comes_and_nothing_leaves", canary_listeners::check_canaries)
}

#[test]
fn no_spelling_of_a_private_address_is_reached() -> Result<()> {
    run_in_namespaces("no_spelling_of_a_private_address_is_reached", fetch_attacks::check_spellings)
}

#[test]
fn no_redirect_leads_to_a_private_address() -> Result<()> {
    run_in_namespaces("no_redirect_leads_to_a_private_address", fetch_attacks::check_redirects)
}

#[test]
fn no_name_that_changes_its_answer_is_followed_to_a_private_address() -> Result<()> {
    run_in_namespaces(
        "no_name_that_changes_its_answer_is_followed_to_a_private_address",
        fetch_attacks::check_rebinding,
    )
}

#[test]
fn no_page_in_a_browser_with_a_network_of_its_own_reaches_a_private_address() -> Result<()> {
    let test = "no_page_in_a_browser_with_a_network_of_its_own_reaches_a_private_address";
    run_in_namespaces(test, || browser_attacks::check_browser(HubPrivilege::Root))
}

#[test]
fn no_page_in_a_browser_on_the_network_of_the_hub_reaches_a_private_address() -> Result<()> {
    let test = "no_page_in_a_browser_on_the_network_of_the_hub_reaches_a_private_address";
    run_in_namespaces(test, || browser_attacks::check_browser(HubPrivilege::Unprivileged))
}
