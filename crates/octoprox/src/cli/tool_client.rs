//! Where `octoprox call` and `octoprox tools` get their answers: the background hub, or a hub of their own.

use crate::app::{App, StartServers};
use crate::app_context::{AppContext, AppMode, block_on_current_thread, load_settings};
use crate::app_error::AppError;
use crate::attach::hub_protocol::{Hello, Purpose, SessionRequest, from_line, to_line};
use crate::attach::tool_queries::{ToolAnswer, ToolQuery, answer};
use crate::attach::{AttachError, HubStartup, HubStream};
use crate::cli::standalone::StandaloneOption;
use crate::settings::Flags;
use crate::telemetry::LogMode;
use octo_hub::{Hub, ListOptions};
use std::io::Write;
use tokio_util::sync::CancellationToken;

/// What a command is about to ask.
pub struct ToolSession<'a> {
    pub flags: &'a Flags,
    pub profile: &'a str,
    pub mode: AppMode,
    /// The tool that is called; a list needs all servers.
    pub tool: Option<&'a str>,
    pub standalone: &'a StandaloneOption,
}

/// Answers queries of one command.
pub enum ToolClient {
    /// The background hub.
    Attached(Box<HubStream>),
    /// A hub in this process.
    Local { assembly: Box<App>, profile: String },
}

impl ToolSession<'_> {
    /// Runs `work` with a client. The background hub answers if it runs, and is started if servers are needed.
    pub fn run(
        &self,
        work: impl AsyncFnOnce(&mut ToolClient) -> Result<(), AppError>,
    ) -> Result<(), AppError> {
        block_on_current_thread(async {
            let loaded = load_settings(self.flags)?;
            let servers = match self.tool {
                Some(tool) => StartServers::for_tool(&loaded.settings, tool, self.profile),
                None => StartServers::All,
            };
            let needs_servers = servers != StartServers::NoServers && !loaded.settings.servers.is_empty();
            if let Some(stream) = self.attach(needs_servers)? {
                return work(&mut ToolClient::Attached(Box::new(stream))).await;
            }
            let session = AppContext::start(loaded, LogMode::Command, self.mode)?;
            let assembly = Box::new(App::build(&session, &servers)?);
            let mut client = ToolClient::Local { assembly, profile: self.profile.to_owned() };
            let done = work(&mut client).await;
            if let ToolClient::Local { assembly, .. } = client {
                assembly.shutdown().await;
            }
            session.shutdown().await;
            done
        })
    }

    fn attach(&self, needs_servers: bool) -> Result<Option<HubStream>, AppError> {
        if self.standalone.is_set()? {
            return Ok(None);
        }
        let Ok(startup) = HubStartup::new(self.flags) else { return Ok(None) };
        let request = SessionRequest::new(&startup.world, self.flags, self.profile, ListOptions::default());
        let hello = Hello::new(Purpose::Queries(request));
        let attached = match needs_servers {
            true => HubStream::attach_or_start(&startup, &hello),
            false => HubStream::attach(&startup, &hello),
        };
        match attached {
            Ok(stream) => Ok(Some(stream)),
            Err(AttachError::Unavailable(_)) => Ok(None),
            Err(error @ AttachError::Refused(_)) => Err(error.into()),
        }
    }
}

impl ToolClient {
    /// Asks the hub. An interrupt cancels a call; the background hub notices the end of this process.
    pub async fn ask(&mut self, query: ToolQuery) -> Result<ToolAnswer, AppError> {
        let answer = match self {
            Self::Local { assembly, profile } => ask_local(&assembly.hub, profile, query).await,
            Self::Attached(hub) => {
                let asked = hub.stream.write_all(&to_line(&query)).and_then(|()| hub.read_line());
                let line = asked.map_err(|_| stopped(&query))?;
                from_line(&line).ok_or_else(|| stopped(&query))?
            }
        };
        match answer {
            ToolAnswer::Failed(refusal) => Err(refusal.into()),
            answer => Ok(answer),
        }
    }
}

async fn ask_local(hub: &Hub, profile: &str, query: ToolQuery) -> ToolAnswer {
    let cancel = CancellationToken::new();
    let is_call = matches!(query, ToolQuery::Call { .. });
    let mut answered = std::pin::pin!(answer(hub, profile, query, cancel.clone()));
    tokio::select! {
        answer = &mut answered => answer,
        _ = tokio::signal::ctrl_c(), if is_call => {
            cancel.cancel();
            answered.await
        }
    }
}

fn stopped(query: &ToolQuery) -> AppError {
    AppError::new(match query {
        ToolQuery::Call { .. } => {
            "The hub stopped during this call. The call may have taken effect: check before you repeat it."
        }
        ToolQuery::Find { .. } | ToolQuery::List | ToolQuery::Surface { .. } => {
            "The hub stopped. Run the command again."
        }
    })
}
