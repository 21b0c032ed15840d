//! `octoprox login`: a person logs in at a server, with a browser on any machine.

mod callback;
mod hidden;
mod place;

use super::failure::Failure;
use super::out;
use super::session::{Purpose, Session, alone, settings};
use super::width::{columns, talks_to_a_person, wrapped};
use crate::settings::Flags;
use crate::telemetry::Talk;
use callback::Door;
use clap::Args;
use octo_model::{Kind, ToolError};
use octo_oauth::{CompletedLogin, LoginPrompt, LoginState, LoginStatus};
pub use place::Place;
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How often it is looked whether a hub, or the device's page, has finished the login.
const LOOK: Duration = Duration::from_millis(500);
/// How long an answer may take to become a login, wherever that is done: the authorization server is asked for it.
const EXCHANGE: Duration = Duration::from_secs(25);
/// How long the last page may take to reach the browser.
const FAREWELL: Duration = Duration::from_millis(500);

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

/// What comes from outside while a login waits.
enum Heard {
    /// A browser came back.
    Back(Result<CompletedLogin, ToolError>),
    /// A person has pasted something.
    Line(String),
}

impl Login {
    pub fn run(&self, flags: &Flags) -> Result<(), Failure> {
        let loaded = settings(flags)?;
        alone(async {
            let session = Session::begin(loaded, Talk::Person, Purpose::Looks)?;
            let mut interrupts = signal(SignalKind::interrupt())?;
            let door = Door::open(&session, self.server.contains("://")).await;
            let redirect = door.redirect(&session);
            let place = Place::find(&session, &self.server, self.profile.as_deref(), self.device, redirect)?;
            let before = place.status().await?;
            let begun = tokio::select! {
                begun = place.begin() => begun?,
                _ = interrupts.recv() => {
                    place.cancel().await?;
                    return Err(given_up());
                }
            };
            let ended = match begun {
                LoginPrompt::ApiKey => self.key(&place, &mut interrupts).await,
                LoginPrompt::Open { url, code_host, expires_in, .. } => {
                    self.open(&url, &code_host, expires_in, &door)?;
                    let (heard, inbox) = mpsc::channel(16);
                    let serving = door.serve(&place, heard.clone());
                    tokio::spawn(lines(heard));
                    let ended = self.wait(&place, &before, (inbox, &mut interrupts), expires_in).await;
                    serving.end(FAREWELL).await;
                    ended
                }
                LoginPrompt::Enter { url, user_code, url_with_code, expires_in } => {
                    self.enter(&url, &user_code, url_with_code.as_deref(), expires_in)?;
                    let (_nobody, inbox) = mpsc::channel(1);
                    self.wait(&place, &before, (inbox, &mut interrupts), expires_in).await
                }
            };
            self.tell(&place, ended?).await
        })
    }

    fn open(&self, url: &str, code_host: &str, expires_in: i64, door: &Door) -> Result<(), Failure> {
        say(&format!(
            "Open this address in a browser, on any machine, and agree to what is asked. The login code goes to {code_host}:"
        ));
        if self.json {
            let opened =
                json!({"next": "open", "url": url, "code_host": code_host, "expires_in": expires_in});
            out::data(&opened.to_string())?;
        } else {
            out::data(url)?;
        }
        let back = if door.is_open() {
            "If the last page cannot be shown"
        } else {
            "A running hub takes the answer. If the last page cannot be shown"
        };
        say(&format!(
            "{back}, copy its whole address from the browser and paste it here. Ctrl-C gives up; there are {} left.",
            minutes(expires_in)
        ));
        Ok(())
    }

    fn enter(&self, url: &str, code: &str, whole: Option<&str>, expires_in: i64) -> Result<(), Failure> {
        say(&format!("Open the address on any device and enter the code, within {}:", minutes(expires_in)));
        if self.json {
            let told = json!({"next": "enter", "url": url, "user_code": code, "url_with_code": whole, "expires_in": expires_in});
            out::data(&told.to_string())?;
        } else {
            out::data(&format!("{code}\n{}", whole.unwrap_or(url)))?;
        }
        say("This command ends when that is done. Ctrl-C gives up.");
        Ok(())
    }

    async fn key(&self, place: &Place, interrupts: &mut Signal) -> Result<CompletedLogin, Failure> {
        if self.json {
            out::data(&json!({"next": "key"}).to_string())?;
        }
        let question = format!("API key for {}: ", place.shown);
        let line = tokio::select! {
            line = hidden::line(&question) => line?,
            _ = interrupts.recv() => return Err(given_up()),
        };
        Ok(place.complete(&line).await?)
    }

    /// Waits for the first of: the browser, a pasted answer, another process that finishes it, the end of the time.
    async fn wait(
        &self,
        place: &Place,
        before: &LoginStatus,
        (mut inbox, interrupts): (mpsc::Receiver<Heard>, &mut Signal),
        expires_in: i64,
    ) -> Result<CompletedLogin, Failure> {
        let begun = Instant::now();
        let end = begun + Duration::from_secs(expires_in.max(1).cast_unsigned());
        let mut answered_at = None;
        loop {
            let answered = tokio::select! {
                Some(heard) = inbox.recv() => match heard {
                    Heard::Back(answered) => answered,
                    Heard::Line(line) => place.complete(&line).await,
                },
                () = tokio::time::sleep(LOOK) => {
                    let now = place.status().await?;
                    if now.pending_secs.is_some() {
                        continue;
                    }
                    match place.settled(before, now, begun.elapsed()) {
                        Err(_) if answered_at.get_or_insert_with(Instant::now).elapsed() < EXCHANGE => continue,
                        settled => return Ok(settled?),
                    }
                }
                () = tokio::time::sleep_until(end) => {
                    place.cancel().await?;
                    return Err(self.late().into());
                }
                _ = interrupts.recv() => {
                    place.cancel().await?;
                    return Err(given_up());
                }
            };
            match answered {
                Ok(done) if done.server == place.server => return Ok(done),
                // Another login that came back to the same page.
                Ok(_) => {}
                // An answer to something else: it says nothing about this login.
                Err(error) if matches!(error.kind, Kind::NotFound | Kind::Invalid) => {
                    let waits = place.status().await?.pending_secs.is_some();
                    say(&format!("{}{}", error.text(), if waits { " The login still waits." } else { "" }));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn late(&self) -> ToolError {
        ToolError::new(Kind::Timeout, "Nobody has finished the login in time.")
            .hint(format!("Run `octoprox login {}` again, and use the new address.", self.server))
    }

    async fn tell(&self, place: &Place, done: CompletedLogin) -> Result<(), Failure> {
        if self.json {
            let told = json!({"server": place.shown, "state": LoginState::Connected.as_str(), "scopes": done.scopes});
            out::data(&told.to_string())?;
        }
        say(&format!("Logged in at {}.", place.shown));
        Ok(())
    }
}

fn given_up() -> Failure {
    say("Given up: nothing has changed.");
    Failure::silent(130)
}

/// Talk: in lines that fit for people, as one line for programs.
pub fn say(text: &str) {
    if talks_to_a_person() {
        out::talk(&wrapped(text, columns()).join("\n"));
    } else {
        out::talk(text);
    }
}

fn minutes(seconds: i64) -> String {
    match seconds {
        ..120 => format!("{seconds} seconds"),
        _ => format!("{} minutes", seconds / 60),
    }
}

/// What a person pastes. The end of the input is no answer: the browser may still come back.
async fn lines(heard: mpsc::Sender<Heard>) {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if !line.trim().is_empty() && heard.send(Heard::Line(line)).await.is_err() {
            return;
        }
    }
    // The other end must not take silence for the end of everything.
    heard.closed().await;
}
