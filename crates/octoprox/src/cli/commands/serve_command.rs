//! `octoprox serve`: MCP and REST over HTTP.

use crate::app::{App, StartServers};
use crate::app_context::{AppContext, AppMode, block_on_multi_thread, load_settings_silently};
use crate::app_error::AppError;
use crate::cli::admin_listener;
use crate::fleet::{Fleet, FrontServer, Role, Roles, no_fleet};
use crate::process::service_manager::{self, ActivatedSockets};
use crate::reloader::{ListenerAccess, Reloader};
use crate::settings::{Flags, Settings, SettingsProblems, listen_address, unauthenticated_binding};
use crate::stores::shared_revocations;
use crate::telemetry::{LogMode, PrometheusMetrics};
use crate::terminal::console;
use axum::Router;
use clap::Args;
use octo_grants::{descriptor_limit, raise_descriptor_limit};
use octo_hub::Hub;
use octo_mcp::{Mcp, McpSettings};
use octo_model::ItemKind;
use octo_web::{EdgeSettings, RestConfig, Tokens};
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Time for open requests to finish after a signal. Containers are killed after ten seconds, and the last audit records
/// have to be written before that.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(8);
/// Descriptors for databases, servers and programs, of a process that may have many.
const MAX_RESERVED_DESCRIPTORS: u64 = 2_048;

/// Interval of the check for expired tokens.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(1);

/// Serve MCP at /mcp and REST at /tools.
///
/// Listens on loopback by default. On any other address, bearer tokens are required, and the hub does not start without
/// one. Logs go to standard output as JSON. Changed settings are reloaded while it runs; SIGHUP reloads them at once.
#[derive(Args)]
#[command(after_help = "Examples:
  octoprox serve
  octoprox serve --port 8080 --servers ~/.cursor/mcp.json
  octoprox serve --host 0.0.0.0 --config octoprox.yaml")]
pub struct Serve {
    /// Address to listen on [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    host: Option<String>,
    /// Port to listen on; 0 selects a free one [default: 7000]
    #[arg(long)]
    port: Option<u16>,
    /// Roles of this node in the fleet [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "ROLES")]
    roles: Vec<Role>,
}

impl Serve {
    pub fn run(&self, flags: Flags) -> Result<(), AppError> {
        let flags = Flags { host: self.host.clone(), port: self.port, ..flags };
        let sockets = ActivatedSockets::take()?;
        let mut loaded = load_settings_silently(&flags)?;
        if !self.roles.is_empty() && loaded.settings.fleet.nats.is_empty() {
            return Err(no_fleet("--roles"));
        }
        if self.roles == [Role::Worker] {
            return Err(AppError::invalid(
                "--roles: a node without the role `front` has nothing to listen for. Use `octoprox worker`.",
            ));
        }
        let in_force = loaded.settings.clone();
        sockets.overwrite_addresses(&mut loaded.settings)?;
        if let Some(problem) = unauthenticated_binding(&loaded.settings, &loaded.layers) {
            return Err(SettingsProblems::from(problem).into());
        }
        raise_descriptor_limit()?;
        block_on_multi_thread(async {
            let Signals { interrupts, terms, hangups } = Signals::new()?;
            let listener = match sockets.http {
                Some(socket) => TcpListener::from_std(socket)?,
                None => bind(&loaded.settings).await?,
            };
            loaded.settings.listen.port = listener.local_addr()?.port();
            let door = match sockets.admin {
                Some(socket) => Some(TcpListener::from_std(socket)?),
                None => admin_listener::bind_admin(&mut loaded).await?,
            };
            let mut session = AppContext::start(loaded, LogMode::Server, AppMode::CallTools)?;
            let numbers = PrometheusMetrics::install().map_err(|error| AppError::new(format!("{error}.")))?;
            numbers.spawn_upkeep();
            session.fleet = Fleet::join(&session.loaded.settings, Roles::new(&self.roles)).await?;
            let assembly = App::build(&session, &StartServers::All)?;
            let settings = &session.loaded.settings;
            let address = listener.local_addr()?;
            let tokens = tokens(settings)?;
            if address.ip().is_unspecified() && settings.http.allowed_hosts.is_empty() {
                tracing::warn!(
                    "only requests to localhost are accepted; add the host names of this machine to http.allowed_hosts"
                );
            }
            shared_revocations::apply(assembly.fleet_records.as_ref(), &tokens).await;
            let (router, mcp) = build_router(&session, &assembly, numbers, address, tokens.clone())?;
            let front = match &session.fleet {
                Some(fleet) => Some(fleet.serve_front(&mcp).await?),
                None => None,
            };
            let mut listeners = vec![(listener, router)];
            let mut admin = None;
            if let Some(listener) = door {
                let at = listener.local_addr()?;
                admin = Some(at);
                let hosts = allowed_hosts(settings, at);
                listeners.push((
                    listener,
                    admin_listener::admin_router(&session, &assembly, tokens.clone(), hosts)?,
                ));
            }
            let door = ListenerAccess { tokens: tokens.clone(), mcp: Arc::clone(&mcp) };
            let reloader = Reloader::new(&session, &assembly, flags, in_force, Some(door));
            let _followed = reloader.watch(&session, hangups);
            assembly.gateway.keep_logins_alive();
            shared_revocations::follow(assembly.fleet_records.clone(), tokens.clone(), &mcp);
            tokio::spawn(expire_tokens(tokens, Arc::clone(&mcp)));
            announce(&assembly.hub, address, admin);
            service_manager::notify_ready();
            service_manager::spawn_watchdog();
            let listeners = listeners.into_iter().zip(listener_limits(settings)).collect();
            serve_until_signal(listeners, &mcp, &assembly, front, (interrupts, terms)).await;
            mcp.shutdown().await;
            assembly.shutdown().await;
            session.shutdown().await;
            Ok(())
        })
    }
}

async fn bind(settings: &Settings) -> Result<TcpListener, AppError> {
    let listen = &settings.listen;
    let host = listen_address(&listen.host)
        .ok_or_else(|| AppError::invalid("listen.host: not an IP address or `localhost`."))?;
    TcpListener::bind((host, listen.port)).await.map_err(|error| {
        AppError::new(format!(
            "Cannot listen on {host} port {}: {error}. Choose another port with --port.",
            listen.port
        ))
    })
}

/// Builds the MCP and REST routers behind one edge.
fn build_router(
    session: &AppContext,
    assembly: &App,
    numbers: PrometheusMetrics,
    address: SocketAddr,
    tokens: Tokens,
) -> Result<(Router, Arc<Mcp>), AppError> {
    let settings = &session.loaded.settings;
    let limits = McpSettings {
        session_idle: Duration::from_secs(settings.http.session_idle_seconds),
        max_sessions: settings.http.max_sessions,
        max_sessions_per_caller: caller_share(settings.http.max_sessions, settings),
        max_body_bytes: settings.http.max_body_bytes,
        shared_lists: !tokens.are_required(),
        ..McpSettings::default()
    };
    let rest = RestConfig {
        hub: Arc::clone(&assembly.hub),
        metrics: assembly.metrics_text(numbers),
        probe: assembly.probe(),
        tokens: tokens.clone(),
    };
    let mcp = assembly.mcp(limits, session)?;
    let faces = mcp.router().merge(octo_web::rest_router(rest));
    let edge = EdgeSettings {
        allowed_hosts: allowed_hosts(settings, address),
        allowed_origins: settings.http.allowed_origins.clone(),
        max_body_bytes: settings.http.max_body_bytes,
        tokens,
        ..EdgeSettings::default()
    };
    Ok((octo_web::edge(faces, edge), mcp))
}

/// Limits of the listener for callers and of the one for administration.
fn listener_limits(settings: &Settings) -> [octo_web::ListenerLimits; 2] {
    max_connections(descriptor_limit()).map(|max_connections| octo_web::ListenerLimits {
        max_connections_per_caller: caller_share(max_connections, settings),
        max_connections,
        drain_timeout: DRAIN_TIMEOUT,
        ..octo_web::ListenerLimits::default()
    })
}

/// Connections of the listener for callers and of the one for administration, so that descriptors are left for the
/// databases, servers and programs.
fn max_connections(descriptors: u64) -> [usize; 2] {
    let most = octo_web::ListenerLimits::default().max_connections;
    let for_others = (descriptors / 2).min(MAX_RESERVED_DESCRIPTORS);
    let rest = usize::try_from(descriptors - for_others).unwrap_or(usize::MAX);
    // An eighth of them may be about to close.
    let [callers, admin] = [rest / 10 * 7, rest / 10].map(|share| share.clamp(1, most));
    [callers, admin]
}

/// Limit per caller: a quarter of the total if there are several tokens.
fn caller_share(all: usize, settings: &Settings) -> usize {
    if settings.auth.tokens.len() > 1 { all.div_ceil(4) } else { all }
}

fn tokens(settings: &Settings) -> Result<Tokens, AppError> {
    Tokens::new(&settings.auth.tokens).map_err(|error| AppError::invalid(format!("auth.tokens: {error}")))
}

/// Returns loopback, the listening address, and `http.allowed_hosts`.
fn allowed_hosts(settings: &Settings, address: SocketAddr) -> Vec<String> {
    let mut hosts = EdgeSettings::default().allowed_hosts;
    let ip = address.ip();
    if !ip.is_unspecified() {
        hosts.push(host_of_url(&ip.to_string()));
    }
    hosts.extend(settings.http.allowed_hosts.iter().map(|host| host_of_url(host)));
    hosts
}

/// A host as URLs have it: IPv6 addresses in brackets.
fn host_of_url(host: &str) -> String {
    if host.parse::<Ipv6Addr>().is_ok() { format!("[{host}]") } else { host.to_owned() }
}

/// Prints the addresses and the number of tools. Servers that are still starting add their tools later.
fn announce(hub: &Hub, address: SocketAddr, admin: Option<SocketAddr>) {
    let host = local_address(address);
    let admin = admin.map(|admin| format!(" · admin http://{}", local_address(admin))).unwrap_or_default();
    let view = hub.view("").ok();
    let tools = view.as_ref().map_or(0, |view| view.list(ItemKind::Tool).len());
    let more = if view.is_some_and(|view| view.is_starting) { ", more to come" } else { "" };
    let version = env!("CARGO_PKG_VERSION");
    console::print_err(&format!(
        "octoprox {version} · MCP http://{host}/mcp · REST http://{host}/tools{admin} · {tools} tools{more}"
    ));
    tracing::info!(%address, version, tools, "listening");
}

/// Address that can be opened on this machine.
pub fn local_address(address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() { SocketAddr::from(([127, 0, 0, 1], address.port())) } else { address }
}

/// Signal handlers, installed at startup: a SIGHUP before the hub can reload does not end it.
pub struct Signals {
    pub interrupts: Signal,
    pub terms: Signal,
    pub hangups: Signal,
}

impl Signals {
    pub fn new() -> Result<Self, AppError> {
        Ok(Self {
            interrupts: signal(SignalKind::interrupt())?,
            terms: signal(SignalKind::terminate())?,
            hangups: signal(SignalKind::hangup())?,
        })
    }
}

/// Ends sessions and streams whose token has expired.
async fn expire_tokens(tokens: Tokens, mcp: Arc<Mcp>) {
    loop {
        tokio::time::sleep(EXPIRY_INTERVAL).await;
        tokens.end_expired();
        mcp.end_revoked_callers(|caller| tokens.still_accepts(caller));
    }
}

/// Serves until a signal. The first signal lets open requests finish; the second ends them.
async fn serve_until_signal(
    listeners: Vec<((TcpListener, Router), octo_web::ListenerLimits)>,
    mcp: &Mcp,
    assembly: &App,
    front: Option<FrontServer>,
    (mut interrupts, mut terms): (Signal, Signal),
) {
    let shutdown = CancellationToken::new();
    let asked = async {
        tokio::select! { _ = interrupts.recv() => {}, _ = terms.recv() => {} }
        tracing::info!("stopping");
        service_manager::notify_stopping();
        shutdown.cancel();
        mcp.close();
        tokio::select! { _ = interrupts.recv() => {}, _ = terms.recv() => {} }
    };
    let serving = listeners.into_iter().map(|((listener, router), limits)| {
        octo_web::serve_with_limits(listener, router, shutdown.clone(), limits)
    });
    // The calls of other nodes end in the same time as those of clients.
    let leaving = async {
        shutdown.cancelled().await;
        let relayed = async {
            match front {
                Some(front) => Some(front.drain(DRAIN_TIMEOUT).await),
                None => None,
            }
        };
        // Calls of clients may wait for messages until they end.
        tokio::join!(assembly.leave_fleet(), relayed).1
    };
    let ended = async { tokio::join!(futures_util::future::join_all(serving), leaving) };
    tokio::select! {
        _ = ended => {}
        () = asked => tracing::warn!("stopped without waiting for open requests"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_left_for_what_is_not_a_connection() {
        for (descriptors, callers, admin) in [
            (256, 84, 12),
            (1_024, 357, 51),
            (4_096, 1_428, 204),
            (65_536, 16_384, 6_348),
            (u64::MAX, 16_384, 16_384),
        ] {
            assert_eq!(max_connections(descriptors), [callers, admin], "{descriptors}");
        }
        assert_eq!(max_connections(0), [1, 1]);
    }

    #[test]
    fn hosts_are_compared_as_urls_have_them() {
        for (host, wanted) in [
            ("fd00::3", "[fd00::3]"),
            ("[fd00::3]", "[fd00::3]"),
            ("[fd00::3]:7000", "[fd00::3]:7000"),
            ("10.0.0.3", "10.0.0.3"),
            ("hub.example:7000", "hub.example:7000"),
        ] {
            assert_eq!(host_of_url(host), wanted);
        }
    }
}
