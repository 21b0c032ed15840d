//! Effect of login events on the links: links react immediately, without waiting for the next retry.

use crate::lifecycle::link::Link;
use crate::lifecycle::link_set::LinkSet;
use crate::lifecycle::link_state::LinkState;
use octo_model::{Caller, Remedy};
use octo_oauth::{Accounts, LoginChange, LoginEvent};
use octo_ports::{Changes, Owner};
use octo_toolkit::{Audience, Event, SourceState};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Minimum time between two attempts with the same login, such as one whose refresh fails.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// Runs until the upstream is stopped.
pub(crate) async fn run(
    links: Weak<LinkSet>,
    accounts: Accounts,
    mut news: Receiver<LoginEvent>,
    stop: CancellationToken,
) {
    let subscribe = |links: Arc<LinkSet>| (links.primary.watch_state(), links.server.listing.subscribe());
    let Some((mut state, mut listing)) = links.upgrade().map(subscribe) else { return };
    // Subscribed while only a login can help.
    let mut changes: Option<Changes> = None;
    let mut next_check = Instant::now();
    loop {
        let is_refused = matches!(*state.borrow_and_update(), LinkState::Refused(_));
        let is_ready = listing.borrow_and_update().state == SourceState::Ready;
        if !is_refused || is_ready {
            changes = None;
        } else {
            changes.get_or_insert_with(|| accounts.changes());
            let Some(links) = links.upgrade() else { return };
            if next_check <= Instant::now() {
                next_check = Instant::now() + RETRY_INTERVAL;
                check_external_login(&links, &accounts, &news).await;
            }
        }
        let can_check = changes.is_some();
        let changed = async {
            match &mut changes {
                Some(changes) => changes.changed().await,
                None => std::future::pending().await,
            }
        };
        let told = tokio::select! {
            told = news.recv() => told,
            () = changed => {
                next_check = Instant::now();
                continue;
            }
            () = tokio::time::sleep_until(next_check), if can_check => continue,
            changed = state.changed() => if changed.is_ok() { continue } else { return },
            changed = listing.changed() => if changed.is_ok() { continue } else { return },
            () = stop.cancelled() => return,
        };
        let Some(links) = links.upgrade() else { return };
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
async fn check_external_login(links: &LinkSet, accounts: &Accounts, news: &Receiver<LoginEvent>) {
    let (first, server) = (&links.primary, &links.server);
    let whose = match (&first.account, &server.spec.listing_caller) {
        (Some(account), _) if account.has_untried_login().await => account.owner().clone(),
        (None, Some(lister))
            if accounts.for_caller(lister).has_untried_login().await && !links.is_refused(lister).await =>
        {
            Owner::from(lister)
        }
        _ => return,
    };
    // A login of this process has its own event.
    if news.is_empty() && matches!(&*first.state(), LinkState::Refused(_)) {
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
    let text = format!("The login at {server} was lost. {why}");
    let remedy = Remedy::Login { server: server.clone() };
    let _ = links.server.events.send(Event::Warning { audience, text, remedy });
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
