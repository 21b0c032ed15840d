//! Service managers such as systemd: activated sockets, and notifications of readiness, reloads and the watchdog.

use crate::app_error::AppError;
use crate::settings::Settings;
use listenfd::ListenFd;
use rustix::net::sockopt::socket_acceptconn;
use sd_notify::NotifyState;
use std::net::TcpListener;

/// Sockets that the service manager opened: first that of MCP and REST, then that of the admin API.
#[derive(Default)]
pub struct ActivatedSockets {
    pub http: Option<TcpListener>,
    pub admin: Option<TcpListener>,
}

impl ActivatedSockets {
    /// Takes the sockets out of the environment. Must be called before any thread starts.
    pub fn take() -> Result<Self, AppError> {
        let mut passed = ListenFd::from_env();
        if passed.len() > 2 {
            return Err(AppError::invalid(format!(
                "The service manager passed {} sockets. Configure at most two: MCP and REST, then the admin API.",
                passed.len()
            )));
        }
        Ok(Self { http: take(&mut passed, 0)?, admin: take(&mut passed, 1)? })
    }

    /// Replaces the addresses of the settings by those of the sockets.
    pub fn overwrite_addresses(&self, settings: &mut Settings) -> Result<(), AppError> {
        if let Some(http) = &self.http {
            let address = http.local_addr()?;
            (settings.listen.host, settings.listen.port) = (address.ip().to_string(), address.port());
        }
        if let Some(admin) = &self.admin {
            let address = admin.local_addr()?;
            (settings.admin.host, settings.admin.port) = (address.ip().to_string(), address.port());
        }
        Ok(())
    }
}

fn take(passed: &mut ListenFd, index: usize) -> Result<Option<TcpListener>, AppError> {
    let unusable = |why: String| {
        AppError::invalid(format!(
            "Socket {} of the service manager cannot be used: {why}. Use ListenStream= with a TCP address and port, and Accept=no.",
            index + 1
        ))
    };
    let Some(socket) = passed.take_tcp_listener(index).map_err(|error| unusable(error.to_string()))? else {
        return Ok(None);
    };
    if !socket_acceptconn(&socket).is_ok_and(|listens| listens) {
        return Err(unusable("it does not listen".to_owned()));
    }
    socket.set_nonblocking(true)?;
    Ok(Some(socket))
}

/// Reports that the hub serves requests, after the start or a reload.
pub fn notify_ready() {
    notify(&[NotifyState::Ready]);
}

/// Reports that settings are being reloaded.
pub fn notify_reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!(%error, "cannot notify the service manager"),
    }
}

/// Reports that the hub is stopping.
pub fn notify_stopping() {
    notify(&[NotifyState::Stopping]);
}

/// Notifies the watchdog at half of its interval, if the service manager has one for this process. Needs a runtime.
pub fn spawn_watchdog() {
    if let Some(interval) = sd_notify::watchdog_enabled().filter(|interval| !interval.is_zero()) {
        tokio::spawn(async move {
            loop {
                notify(&[NotifyState::Watchdog]);
                tokio::time::sleep(interval / 2).await;
            }
        });
    }
}

/// Does nothing without a service manager.
fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "cannot notify the service manager");
    }
}
