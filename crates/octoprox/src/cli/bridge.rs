//! `octoprox bridge`: MCP on standard input and output, in front of a server that is somewhere else.

mod address;
mod remote;
mod unkept;

use super::failure::Failure;
use super::session::{Purpose, Session, alone, settings};
use super::{out, pipes};
use crate::jq;
use crate::secret_key::credentials;
use crate::settings::{Flags, World, is_secret_name};
use crate::telemetry::Talk;
pub use address::address;
use address::headers;
use clap::{Args, ValueEnum};
use octo_grants::Credentials;
use octo_grants::JqRunner;
use octo_grants::credentials::Owner;
use octo_hub::{Hub, HubConfig, PolicySettings, Profile, ResultLimits};
use octo_mcp::{Mcp, McpSettings};
use octo_model::Caller;
use octo_oauth::{ClientIdentity, LoginSpec, Logins};
use octo_toolkit::Source;
use octo_upstream::{BreakerSpec, TransportSpec, Upstream, UpstreamSpec};
use remote::{Remote, Way};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use unkept::Unkept;

/// The one profile there is.
const WINDOW: &str = "bridge";
/// The other side has limits of its own; this one only ends what nobody waits for any more.
const LONGEST_CALL: Duration = Duration::from_secs(3600);
/// What comes before this is not answered yet: many clients ask for lists once and never again.
const FIRST_LISTS: Duration = Duration::from_secs(10);
const FAREWELL: Duration = Duration::from_secs(2);

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
    #[arg(long, value_enum, default_value_t = Spoken::Auto, hide_possible_values = true)]
    era: Spoken,
}

#[derive(Clone, Copy, ValueEnum)]
enum Spoken {
    Auto,
    Legacy,
    Modern,
}

impl Bridge {
    pub fn run(&self, flags: &Flags) -> Result<(), Failure> {
        let world = World::real();
        let url = address(&self.url, self.profile.as_deref())?;
        let headers = headers(&self.headers, self.token_env.as_deref(), &world)?;
        let mut loaded = settings(flags)?;
        loaded.secrets.extend(headers.values().cloned());
        // One client, one remote: more threads would only take memory.
        alone(async {
            let session = Session::begin(loaded, Talk::Person, Purpose::Looks)?;
            let mut spec = UpstreamSpec::new(&url, TransportSpec::Http { url: url.clone(), headers });
            spec.net = session.net.clone();
            spec.call_timeout = LONGEST_CALL;
            spec.breaker = BreakerSpec { max_failures: 0, ..spec.breaker };
            spec.era = match self.era {
                Spoken::Auto => None,
                Spoken::Legacy => Some(octo_wire::Era::Legacy),
                Spoken::Modern => Some(octo_wire::Era::Modern),
            };
            let way = self.way(&url, &session, &mut spec, &world).await?;
            let over = CancellationToken::new();
            let _over = over.clone().drop_guard();
            if let Way::Login(logins) = &way {
                tokio::spawn(logins.clone().keep_alive(over));
            }
            let remote = Arc::new(Remote::new(Upstream::start(spec), way));
            let following = tokio::spawn(Arc::clone(&remote).follow());
            let served = serve(&remote).await;
            following.abort();
            let _ = tokio::time::timeout(FAREWELL, remote.upstream.stop()).await;
            served
        })
    }

    /// How the remote learns who is there. A login is only looked for where no key was given by hand.
    async fn way(
        &self,
        url: &str,
        session: &Session,
        spec: &mut UpstreamSpec,
        world: &World,
    ) -> Result<Way, Failure> {
        let TransportSpec::Http { headers, .. } = &spec.transport else { return Ok(Way::Nothing) };
        if headers.keys().any(|name| is_secret_name(name)) {
            return Ok(Way::Token(self.token_env.clone()));
        }
        let caller = Caller::local();
        let store = Credentials::new(Arc::new(credentials(&session.loaded.settings, world)?));
        if let Err(error) = store.all(&Owner::from(&caller), url).await {
            out::talk(&format!("octoprox: no login can be used here: {}", error.text()));
            return Ok(Way::Nothing);
        }
        // It begins no login itself, so nobody comes back to it.
        let logins = Logins::new(store, ClientIdentity::new(""))?;
        logins.register(LoginSpec { net: session.net.clone(), ..LoginSpec::oauth(url, url) });
        spec.accounts = Some(logins.account(Owner::from(&caller), url)?.into());
        Ok(Way::Login(logins))
    }
}

/// A hub with nothing in it but the remote.
async fn serve(remote: &Arc<Remote>) -> Result<(), Failure> {
    let source = Arc::clone(remote) as Arc<dyn Source>;
    let hub = Hub::new(HubConfig {
        profiles: vec![Profile::passthrough(WINDOW, &source)],
        sources: vec![source],
        policy: PolicySettings::default(),
        limits: Vec::new(),
        cache: Vec::new(),
        // The remote has cut what it wanted to cut; what it sends is bounded by the longest message.
        shape: ResultLimits { max_bytes: usize::MAX, max_resource_bytes: usize::MAX },
        timeout: LONGEST_CALL,
        ledger: Arc::new(Unkept),
        spills: Arc::new(Unkept),
        jq: JqRunner::new(Arc::new(jq::Workers::new()?)),
        tracer: None,
    });
    let hub = hub.map_err(|error| Failure::new(format!("{error}.")))?;
    hub.wait_until_listed(WINDOW, FIRST_LISTS).await;
    let mcp = Mcp::new(hub, McpSettings::default())?;
    let (mut term, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let face = Arc::clone(&mcp);
    let served = tokio::select! {
        served = face.stdio(Arc::new(Caller::local()), WINDOW.to_owned(), pipes::input(), pipes::output()) => served,
        _ = term.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    };
    mcp.end().await;
    Ok(served?)
}
