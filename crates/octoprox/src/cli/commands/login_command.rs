//! `octoprox login`: logs in to an upstream server, with a browser on any machine.

mod callback_listener;
mod login_target;

use crate::app_context::{AppContext, AppMode, block_on_current_thread, load_settings};
use crate::app_error::AppError;
use crate::settings::Flags;
use crate::telemetry::LogMode;
use crate::terminal::console;
use crate::terminal::hidden_input::read_hidden_line;
use crate::terminal::terminal_width::{columns, stderr_is_terminal, wrap_words};
use callback_listener::CallbackListener;
use clap::Args;
pub use login_target::LoginTarget;
use octo_model::{Kind, ToolError};
use octo_oauth::{CompletedLogin, LoginDeadline, LoginProgress, LoginPrompt, LoginSnapshot, LoginState};
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Time for the last page to reach the browser before the listener closes.
const LAST_PAGE_TIMEOUT: Duration = Duration::from_millis(500);

/// Log in to a server of the settings, or to the URL of a bridge.
///
/// Prints a URL to open in a browser, on this machine or another one, and waits for the login to finish. If the browser
/// cannot reach this machine, paste the last URL that it shows. API keys are read without echo, or from standard input.
/// A running hub or bridge picks up the login by itself.
#[derive(Args)]
#[command(after_help = "Examples:
  octoprox login notion
  octoprox login notion --device
  octoprox login https://hub.example.com
  octoprox login tickets < key.txt")]
pub struct Login {
    /// Name of the server in the settings, or the URL of a bridge
    server: String,
    /// Profile of the hub at that URL
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Use the device flow: enter a short code on another device
    #[arg(long)]
    device: bool,
    /// Print two lines of JSON: what to do, and the result
    #[arg(long)]
    json: bool,
}

/// Input while a login is pending.
enum LoginInput {
    /// The browser was redirected to the callback URL.
    Callback(Result<CompletedLogin, ToolError>),
    /// The user pasted a line.
    Pasted(String),
}

impl Login {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let loaded = load_settings(flags)?;
        block_on_current_thread(async {
            let session = AppContext::start(loaded, LogMode::Command, AppMode::ReadOnly)?;
            let mut interrupts = signal(SignalKind::interrupt())?;
            let door = CallbackListener::bind(&session, self.server.contains("://")).await;
            let redirect = door.redirect(&session);
            let place =
                LoginTarget::find(&session, &self.server, self.profile.as_deref(), self.device, redirect)?;
            let before = place.snapshot().await?;
            let begun = tokio::select! {
                begun = place.begin() => begun?,
                _ = interrupts.recv() => {
                    place.cancel().await?;
                    return Err(cancelled());
                }
            };
            let ended = match begun {
                LoginPrompt::ApiKey => self.read_api_key(&place, &mut interrupts).await,
                LoginPrompt::Open { url, code_host, expires_in, .. } => {
                    self.show_url(&url, &code_host, expires_in, &door)?;
                    let (heard, inbox) = mpsc::channel(16);
                    let serving = door.serve(&place, heard.clone());
                    tokio::spawn(read_pasted_lines(heard));
                    let ended =
                        self.wait_for_login(&place, &before, (inbox, &mut interrupts), expires_in).await;
                    serving.shutdown(LAST_PAGE_TIMEOUT).await;
                    ended
                }
                LoginPrompt::Enter { url, user_code, url_with_code, expires_in } => {
                    self.show_user_code(&url, &user_code, url_with_code.as_deref(), expires_in)?;
                    let (_, inbox) = mpsc::channel(1);
                    self.wait_for_login(&place, &before, (inbox, &mut interrupts), expires_in).await
                }
            };
            self.report_success(&place, ended?).await
        })
    }

    fn show_url(
        &self,
        url: &str,
        code_host: &str,
        expires_in: i64,
        door: &CallbackListener,
    ) -> Result<(), AppError> {
        print_wrapped(&format!(
            "Open this URL in a browser, on any machine, and approve the access. The authorization code goes to {code_host}:"
        ));
        if self.json {
            let opened =
                json!({"action": "open_url", "url": url, "code_host": code_host, "expires_in": expires_in});
            console::print(&opened.to_string())?;
        } else {
            console::print(url)?;
        }
        let back = if door.is_open() {
            "If the last page cannot be loaded"
        } else {
            "A running hub receives the callback. If the last page cannot be loaded"
        };
        print_wrapped(&format!(
            "{back}, copy its URL from the address bar and paste it here. Ctrl-C cancels. The login expires in {}.",
            format_seconds(expires_in)
        ));
        Ok(())
    }

    fn show_user_code(
        &self,
        url: &str,
        code: &str,
        whole: Option<&str>,
        expires_in: i64,
    ) -> Result<(), AppError> {
        print_wrapped(&format!(
            "Open the URL on any device and enter the code within {}:",
            format_seconds(expires_in)
        ));
        if self.json {
            let told = json!({"action": "enter_code", "url": url, "user_code": code, "url_with_code": whole, "expires_in": expires_in});
            console::print(&told.to_string())?;
        } else {
            console::print(&format!("{code}\n{}", whole.unwrap_or(url)))?;
        }
        print_wrapped("This command exits when the login is complete. Ctrl-C cancels.");
        Ok(())
    }

    async fn read_api_key(
        &self,
        place: &LoginTarget,
        interrupts: &mut Signal,
    ) -> Result<CompletedLogin, AppError> {
        if self.json {
            console::print(&json!({"action": "enter_api_key"}).to_string())?;
        }
        let question = format!("API key for {}: ", place.display_name);
        let line = tokio::select! {
            line = read_hidden_line(&question) => line?,
            _ = interrupts.recv() => return Err(cancelled()),
        };
        Ok(place.complete(&line).await?)
    }

    /// Waits for the first of: the browser callback, a pasted URL, completion by another process, or the timeout.
    async fn wait_for_login(
        &self,
        place: &LoginTarget,
        before: &LoginSnapshot,
        (mut inbox, interrupts): (mpsc::Receiver<LoginInput>, &mut Signal),
        expires_in: i64,
    ) -> Result<CompletedLogin, AppError> {
        let end = Instant::now() + Duration::from_secs(expires_in.max(1).cast_unsigned());
        let mut changes = place.logins.changes();
        let mut deadline = LoginDeadline::default();
        loop {
            let (progress, now) = (before.progress_to(&place.snapshot().await?), place.status().await?);
            let until = deadline.update(now.pending_secs, Instant::now());
            if now.pending_secs.is_none() {
                match progress {
                    LoginProgress::LoggedIn => {
                        return Ok(CompletedLogin { server: place.server.clone(), scopes: now.scopes });
                    }
                    // With an inbox, the error follows there.
                    LoginProgress::Failure(why) if inbox.is_closed() => {
                        return Err(place.failed_error(Some(why)).into());
                    }
                    _ if until <= Instant::now() => return Err(place.failed_error(now.reason).into()),
                    _ => {}
                }
            }
            let answered = tokio::select! {
                Some(heard) = inbox.recv() => match heard {
                    LoginInput::Callback(answered) => answered,
                    LoginInput::Pasted(line) => place.complete(&line).await,
                },
                () = changes.changed() => continue,
                () = tokio::time::sleep_until(until), if until < end => continue,
                () = tokio::time::sleep_until(end) => {
                    place.cancel().await?;
                    return Err(self.timed_out().into());
                }
                _ = interrupts.recv() => {
                    place.cancel().await?;
                    return Err(cancelled());
                }
            };
            match answered {
                Ok(done) if done.server == place.server => return Ok(done),
                // Callback of another login.
                Ok(_) => {}
                // Not a callback of this login.
                Err(error) if matches!(error.kind, Kind::NotFound | Kind::Invalid) => {
                    let waits = place.status().await?.pending_secs.is_some();
                    print_wrapped(&format!(
                        "{}{}",
                        error.text(),
                        if waits { " The login is still pending." } else { "" }
                    ));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn timed_out(&self) -> ToolError {
        ToolError::new(Kind::Timeout, "The login timed out.")
            .hint(format!("Run `octoprox login {}` again and open the new URL.", self.server))
    }

    async fn report_success(&self, place: &LoginTarget, done: CompletedLogin) -> Result<(), AppError> {
        if self.json {
            let told = json!({"server": place.display_name, "state": LoginState::Connected.as_str(), "scopes": done.scopes});
            console::print(&told.to_string())?;
        }
        print_wrapped(&format!("Logged in to {}.", place.display_name));
        Ok(())
    }
}

fn cancelled() -> AppError {
    print_wrapped("Cancelled. Nothing was changed.");
    AppError::silent(130)
}

/// Prints a message to standard error: wrapped on a terminal, otherwise as one line.
pub fn print_wrapped(text: &str) {
    if stderr_is_terminal() {
        console::print_err(&wrap_words(text, columns()).join("\n"));
    } else {
        console::print_err(text);
    }
}

fn format_seconds(seconds: i64) -> String {
    match seconds {
        ..120 => format!("{seconds} seconds"),
        _ => format!("{} minutes", seconds / 60),
    }
}

/// Forwards pasted lines. The end of the input does not end the login: the browser may still be redirected.
async fn read_pasted_lines(heard: mpsc::Sender<LoginInput>) {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if !line.trim().is_empty() && heard.send(LoginInput::Pasted(line)).await.is_err() {
            return;
        }
    }
    // Keep the sender open, so that the receiver does not see a closed channel.
    heard.closed().await;
}
