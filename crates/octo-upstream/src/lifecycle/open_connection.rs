//! Opens a connection for a link: starts the process or prepares the endpoint, and negotiates a revision.

use crate::error::{UpstreamError, UpstreamResult};
use crate::lifecycle::link::Link;
use crate::session::connection::Connection;
use crate::session::handshake::NegotiationPlan;
use crate::transport::Transport;
use crate::transport::close_signal::CloseSignal;
use crate::transport::http::endpoint::Endpoint;
use crate::transport::http::sse_transport::SseTransport;
use crate::transport::stdio::child_process::ChildProcess;
use crate::upstream_spec::TransportSpec;
use octo_grants::{Child, Command};
use octo_oauth::Accounts;
use octo_wire::Era;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Time for a server to show that it uses HTTP+SSE.
const SSE_DETECTION_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) async fn open_connection(link: &Link, plan: NegotiationPlan) -> UpstreamResult<Connection> {
    let uses_sse = &link.server.uses_sse;
    if uses_sse.load(Ordering::Relaxed) {
        let opened = open_with(link, NegotiationPlan::Fixed(Era::Legacy), HttpTransport::Sse).await;
        // If it was detected, it is detected again: the server may have been upgraded.
        uses_sse.store(opened.is_ok() || link.server.spec.sse, Ordering::Relaxed);
        return opened;
    }
    let opened = open_with(link, plan, HttpTransport::Streamable).await;
    let Err(UpstreamError::Status { code: 400 | 404 | 405 | 406 | 415 | 501, .. }) = &opened else {
        return opened;
    };
    if link.server.spec.era == Some(Era::Modern) {
        return opened;
    }
    // Servers of revision 2024-11-05 refuse messages at the URL of the stream.
    let sse = open_with(link, NegotiationPlan::Fixed(Era::Legacy), HttpTransport::Sse);
    match tokio::time::timeout(SSE_DETECTION_TIMEOUT, sse).await {
        Ok(Ok(connection)) => {
            uses_sse.store(true, Ordering::Relaxed);
            Ok(connection)
        }
        Ok(Err(why @ (UpstreamError::Unauthorized(_) | UpstreamError::CredentialUnusable(_)))) => Err(why),
        _ => opened,
    }
}

/// How messages reach a URL.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HttpTransport {
    Streamable,
    Sse,
}

async fn open_with(link: &Link, plan: NegotiationPlan, http: HttpTransport) -> UpstreamResult<Connection> {
    let server = &link.server;
    let (dispatcher, closed) = (Arc::new(server.new_dispatcher()), CloseSignal::default());
    let limit = server.receive_limit.clone();
    let (transport, process) = match &server.spec.transport {
        TransportSpec::Stdio(command) => {
            let mut command = with_credential_env(link, command).await?;
            let mut readable = Vec::new();
            if let Some(find) = &server.spec.package {
                let program = find().await.map_err(UpstreamError::refused)?;
                command.program = program.path.to_string_lossy().into_owned();
                readable = program.readable;
            }
            if let Some(prepare) = server.spec.prepare_start.clone() {
                let prepared = tokio::task::spawn_blocking(move || prepare()).await;
                prepared
                    .unwrap_or_else(|error| Err(octo_model::ToolError::internal(error)))
                    .map_err(UpstreamError::refused)?;
            }
            link.stderr.start_process(&command.env);
            let child = start_process(link, &command, readable).await?;
            let (transport, process) =
                ChildProcess::serve_streams(child, limit, &dispatcher, &closed, &link.stderr);
            (transport, Some(process))
        }
        TransportSpec::Http { url, headers } => {
            let endpoint = Endpoint::new(link.client(url)?, url, headers, limit)?;
            let endpoint = endpoint.with_account(link.account.clone());
            let transport = match http {
                HttpTransport::Streamable => Transport::Http(Arc::new(endpoint)),
                HttpTransport::Sse => {
                    Transport::Sse(SseTransport::open(endpoint, &dispatcher, &closed).await?)
                }
            };
            (transport, None)
        }
    };
    let mut connection = Connection::open(transport, process, dispatcher, closed, plan).await?;
    // A link without a login has the lowest rank.
    if !link.is_anonymous() {
        connection.listing_rank = server.election.next_rank();
    }
    Ok(connection)
}

/// The command with the API key in its environment variable, if one is configured.
async fn with_credential_env(link: &Link, command: &Command) -> UpstreamResult<Command> {
    let mut command = command.clone();
    if link.server.spec.accounts.as_ref().is_some_and(Accounts::needs_env_key) {
        let variable = match &link.account {
            Some(account) => account.env_variable().await.map_err(UpstreamError::credential)?,
            None => None,
        };
        command.env.extend([variable.ok_or(UpstreamError::Unauthorized(401))?]);
    }
    Ok(command)
}

/// Starts the process: in its sandbox, through the launcher, or directly.
async fn start_process(link: &Link, command: &Command, readable: Vec<PathBuf>) -> UpstreamResult<Child> {
    let spec = &link.server.spec;
    match &spec.sandbox {
        Some(sandbox) => {
            let access = sandbox.access(link.owner.as_ref(), readable);
            sandbox.exec.serve(command, &access).await.map_err(|error| {
                let why = error.detail.as_ref().map(|detail| format!(" ({detail})")).unwrap_or_default();
                UpstreamError::NotSent(format!("{}: {}{why}", command.program, error.message))
            })
        }
        None => {
            let started =
                if spec.launcher.is_empty() { command.spawn() } else { command.launch(&spec.launcher).await };
            started.map_err(|error| UpstreamError::NotSent(format!("{}: {error}", command.program)))
        }
    }
}
