//! `octoprox healthcheck`: whether the hub of these settings is ready.

use crate::app_context::{block_on_current_thread, load_settings};
use crate::app_error::AppError;
use crate::cli::commands::serve_command::local_address;
use crate::settings::{Flags, Settings, listen_address};
use crate::terminal::console;
use clap::Args;
use octo_grants::Net;
use octo_grants::net::{NetRequest, NetSpec};
use std::net::SocketAddr;
use std::time::Duration;
use url::Url;

/// Container runtimes give a health check a few seconds.
const READY_TIMEOUT: Duration = Duration::from_secs(4);

/// Check that the running hub is ready, for container health checks and scripts.
///
/// Requests /ready at the address of the settings. Exits with status 1 if the hub does not answer or is not ready.
#[derive(Args)]
#[command(after_help = "Examples:\n  octoprox healthcheck\n  octoprox healthcheck --port 8080")]
pub struct Healthcheck {
    /// Port of the hub [default: that of the settings]
    #[arg(long)]
    port: Option<u16>,
}

impl Healthcheck {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let flags = Flags { port: self.port, ..flags.clone() };
        let url = ready_url(&load_settings(&flags)?.settings)?;
        block_on_current_thread(async {
            let allow = url.host_str().map(str::to_owned).into_iter().collect();
            let net = Net::new(NetSpec { allow, ..NetSpec::default() })?;
            let request =
                NetRequest { timeout: READY_TIMEOUT, max_redirects: 0, ..NetRequest::get(url.clone()) };
            let response = net
                .send(request)
                .await
                .map_err(|error| AppError::new(format!("No hub answers at {url}: {}", error.message)))?;
            if response.status.is_success() {
                return Ok(console::print("ready\n")?);
            }
            Err(AppError::new(format!(
                "The hub at {url} is not ready: status {}. Read its log, or run `octoprox doctor`.",
                response.status.as_u16()
            )))
        })
    }
}

fn ready_url(settings: &Settings) -> Result<Url, AppError> {
    let invalid = || AppError::invalid("listen.host: not an IP address or `localhost`.");
    let host = listen_address(&settings.listen.host).ok_or_else(invalid)?;
    let address = local_address(SocketAddr::new(host, settings.listen.port));
    Url::parse(&format!("http://{address}/ready")).map_err(|_| invalid())
}
