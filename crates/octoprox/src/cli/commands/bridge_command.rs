//! `octoprox bridge`: serves a remote MCP server on standard input and output.

mod null_stores;
mod remote_source;
mod remote_url;

use crate::app_context::{AppContext, AppMode, block_on_current_thread, load_settings};
use crate::app_error::AppError;
use crate::jq_workers;
use crate::remedy_text::remedy_text;
use crate::settings::{Environment, Flags, is_secret_name};
use crate::stores::stores_with_logins;
use crate::telemetry::LogMode;
use crate::terminal::{async_stdio, console};
use clap::{Args, ValueEnum};
use null_stores::NullStores;
use octo_grants::JqRunner;
use octo_hub::{Hub, HubConfig, ListOptions, PolicySettings, Profile, ResultLimits};
use octo_mcp::{Mcp, McpSettings};
use octo_model::Caller;
use octo_oauth::{ClientIdentity, LoginSpec, Logins};
use octo_ports::Owner;
use octo_toolkit::Source;
use octo_upstream::{BreakerSpec, TransportSpec, Upstream, UpstreamSpec};
use remote_source::{RemoteAuth, RemoteSource};
use remote_url::parse_headers;
pub use remote_url::remote_url;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The only profile of a bridge.
const BRIDGE_PROFILE: &str = "bridge";
/// Timeout of calls. The remote has its own limits; this one only ends calls that were abandoned.
const CALL_TIMEOUT: Duration = Duration::from_secs(3600);
/// Wait for the first listing before requests are answered: many clients request lists only once.
const LISTING_TIMEOUT: Duration = Duration::from_secs(10);
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Serve a remote hub, or any remote MCP server, on standard input and output.
///
/// For clients that can only start programs. Names, results, elicitation and list changes pass through unchanged. While
/// the remote is unreachable, calls fail with the reason. If it requires a login, run `octoprox login URL` in another
/// terminal.
#[derive(Args)]
#[command(after_help = "Examples:
  octoprox bridge https://hub.example.com
  octoprox bridge https://hub.example.com --profile work --token-env HUB_TOKEN
  octoprox bridge https://mcp.example.com/mcp --header 'X-Api-Key: env:EXAMPLE_KEY'

In the settings of a client:
  {\"mcpServers\": {\"hub\": {\"command\": \"octoprox\",
    \"args\": [\"bridge\", \"https://hub.example.com\", \"--token-env\", \"HUB_TOKEN\"],
    \"env\": {\"HUB_TOKEN\": \"…\"}}}}")]
pub struct Bridge {
    /// URL of the hub or server. Without a path, it is taken for a hub and /mcp is added
    url: String,
    /// Profile of the hub to serve
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Header to send with every request. With env:NAME, the value is read from a variable and does not appear in process lists
    #[arg(long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// Environment variable with a bearer token for the remote
    #[arg(long, value_name = "VARIABLE")]
    token_env: Option<String>,
    /// Protocol: auto detects it, legacy is the 2025 handshake, modern is revision 2026-07-28
    #[arg(long, value_enum, default_value_t = EraArg::Auto, hide_possible_values = true)]
    era: EraArg,
}

#[derive(Clone, Copy, ValueEnum)]
enum EraArg {
    Auto,
    Legacy,
    Modern,
}

impl Bridge {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let world = Environment::current();
        let url = remote_url(&self.url, self.profile.as_deref())?;
        let headers = parse_headers(&self.headers, self.token_env.as_deref(), &world)?;
        let mut loaded = load_settings(flags)?;
        loaded.secrets.extend(headers.values().cloned());
        // One client and one remote need only one thread.
        block_on_current_thread(async {
            let session = AppContext::start(loaded, LogMode::Command, AppMode::ReadOnly)?;
            let mut spec = UpstreamSpec::new(&url, TransportSpec::Http { url: url.clone(), headers });
            spec.net = session.net.clone();
            spec.call_timeout = CALL_TIMEOUT;
            spec.breaker = BreakerSpec { max_failures: 0, ..spec.breaker };
            spec.era = match self.era {
                EraArg::Auto => None,
                EraArg::Legacy => Some(octo_wire::Era::Legacy),
                EraArg::Modern => Some(octo_wire::Era::Modern),
            };
            let way = self.remote_auth(&url, &session, &mut spec, &world).await?;
            let over = CancellationToken::new();
            let _over = over.clone().drop_guard();
            if let RemoteAuth::Login(logins) = &way {
                tokio::spawn(logins.clone().keep_alive(over));
            }
            let remote = Arc::new(RemoteSource::new(Upstream::start(spec), way));
            let following = tokio::spawn(Arc::clone(&remote).report_status());
            let served = serve(&remote).await;
            following.abort();
            let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, remote.upstream.stop()).await;
            served
        })
    }

    /// Authentication at the remote. A login is used only if no secret header is given.
    async fn remote_auth(
        &self,
        url: &str,
        session: &AppContext,
        spec: &mut UpstreamSpec,
        world: &Environment,
    ) -> Result<RemoteAuth, AppError> {
        let TransportSpec::Http { headers, .. } = &spec.transport else { return Ok(RemoteAuth::Anonymous) };
        if headers.keys().any(|name| is_secret_name(name)) {
            return Ok(RemoteAuth::Token(self.token_env.clone()));
        }
        let caller = Caller::local();
        let stores = stores_with_logins(&session.loaded.settings, world)?;
        if let Err(error) = stores.credentials.all(&Owner::from(&caller), url).await {
            console::print_err(&format!(
                "octoprox: cannot use logins: {}",
                octo_model::ToolError::from(error).text()
            ));
            return Ok(RemoteAuth::Anonymous);
        }
        // No redirect URL: the bridge starts no login itself.
        let logins = Logins::new(&stores, ClientIdentity::new(""))?;
        logins.register(LoginSpec { net: session.net.clone(), ..LoginSpec::oauth(url, url) });
        spec.accounts = Some(logins.account(Owner::from(&caller), url)?.into());
        Ok(RemoteAuth::Login(logins))
    }
}

/// Serves a hub whose only source is the remote.
async fn serve(remote: &Arc<RemoteSource>) -> Result<(), AppError> {
    let source = Arc::clone(remote) as Arc<dyn Source>;
    let hub = Hub::new(HubConfig {
        profiles: vec![Profile::passthrough(BRIDGE_PROFILE, &source)],
        sources: vec![source],
        policy: PolicySettings::default(),
        limits: Vec::new(),
        rate_buckets: None,
        cache: Vec::new(),
        // The remote truncates results; the maximum message size bounds them here.
        result_limits: ResultLimits {
            inline_bytes: usize::MAX,
            read_bytes: usize::MAX,
            max_bytes: usize::MAX,
            max_resource_bytes: usize::MAX,
        },
        timeout: CALL_TIMEOUT,
        audit_log: Arc::new(NullStores),
        result_store: Arc::new(NullStores),
        jq: JqRunner::new(Arc::new(jq_workers::JqWorkers::new()?)),
        code_child: None,
        tracer: None,
        remedy_text,
    });
    let hub = hub.map_err(|error| AppError::new(format!("{error}.")))?;
    hub.wait_until_listed(BRIDGE_PROFILE, LISTING_TIMEOUT).await;
    let mcp = Mcp::new(hub, McpSettings::default())?;
    let (mut term, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let server = Arc::clone(&mcp);
    let served = tokio::select! {
        served = server.serve_stdio(Arc::new(Caller::local()), BRIDGE_PROFILE.to_owned(), ListOptions::default(), async_stdio::input(), async_stdio::output()) => served,
        _ = term.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    };
    mcp.shutdown().await;
    Ok(served?)
}
