//! Effect of login events on the links: links react immediately, without waiting for the next retry.

use crate::lifecycle::link::Link;
use crate::lifecycle::link_set::LinkSet;
use crate::lifecycle::link_state::LinkState;
use octo_model::Caller;
use octo_oauth::{Accounts, LoginChange, LoginEvent};
use octo_ports::Owner;
use octo_toolkit::{Audience, Event};
use std::sync::Weak;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Interval at which logins made by other processes are noticed.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Runs until the upstream is stopped.
pub(crate) async fn run(
    links: Weak<LinkSet>,
    accounts: Accounts,
    mut news: Receiver<LoginEvent>,
    stop: CancellationToken,
) {
    loop {
        let told = tokio::select! {
            told = news.recv() => Some(told),
            () = tokio::time::sleep(POLL_INTERVAL) => None,
            () = stop.cancelled() => return,
        };
        let Some(links) = links.upgrade() else { return };
        let Some(told) = told else {
            check_external_login(&links, &accounts).await;
            continue;
        };
        match told {
            Ok(news) if accounts.concerns(&news) => apply(&links, &news),
            Ok(_) => {}
            // The owner is unknown.
            Err(RecvError::Lagged(_)) => links.for_each(Link::reauthenticate),
            Err(RecvError::Closed) => return,
        }
    }
}

/// Another process, such as the command line, may have completed a login while nothing is listed, so no call can notice
/// it. A login that was refused is not tried again.
async fn check_external_login(links: &LinkSet, accounts: &Accounts) {
    let (first, server) = (&links.primary, &links.server);
    if server.listing.is_ready() {
        return;
    }
    let whose = match (&first.account, &server.spec.listing_caller) {
        (Some(account), _) if account.has_untried_login().await => account.owner().clone(),
        (None, Some(lister))
            if accounts.for_caller(lister).has_untried_login().await && !links.is_refused(lister).await =>
        {
            Owner::from(lister)
        }
        _ => return,
    };
    if matches!(&*first.state(), LinkState::Refused(_)) {
        let server = server.name.to_string();
        apply(links, &LoginEvent { server, owner: whose, change: LoginChange::LoggedIn });
    }
}

/// Caller for the owner of a login, as far as a link needs it.
fn caller_of(owner: &Owner) -> Caller {
    match owner {
        Owner::Shared => Caller::local(),
        Owner::Person(principal) => principal.clone().into(),
    }
}

/// Warns clients about a lost login. The links stay open: active calls may still be answered.
fn warn_login_lost(links: &LinkSet, news: &LoginEvent, why: &str) {
    let audience = match &news.owner {
        Owner::Shared => Audience::Everybody,
        Owner::Person(principal) => Audience::Principal(principal.clone()),
    };
    let server = &news.server;
    let text = format!(
        "The login at {server} was lost. {why} Log in again: run `octoprox login {server}`, or call server_login with server {server}."
    );
    let _ = links.server.events.send(Event::Warning { audience, text });
}

fn apply(links: &LinkSet, news: &LoginEvent) {
    if let LoginChange::Lost(why) = &news.change {
        return warn_login_lost(links, news, why);
    }
    links.for_each(|link| {
        if link.account.as_ref().is_some_and(|account| *account.owner() == news.owner) {
            link.reauthenticate();
        }
    });
    if news.change == LoginChange::LoggedOut {
        return links.close_links_of(&news.owner);
    }
    let Ok((link, busy)) = links.link_to_connect(&caller_of(&news.owner)) else { return };
    let limit = link.server.spec.start_timeout;
    tokio::spawn(async move {
        let mut raised = link.connect_now(Instant::now() + limit).await;
        // An attempt that was already running was refused with the previous login.
        if let (true, Some(account)) = (raised.is_err(), &link.account)
            && account.has_untried_login().await
        {
            raised = link.connect_now(Instant::now() + limit).await;
        }
        if let Err(error) = raised {
            tracing::info!(target: "upstream", server = %link.server.name, %error, "connecting after a login failed");
        }
        drop(busy);
    });
}
