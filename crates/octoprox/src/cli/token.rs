//! `octoprox token`: ways in for callers.

use super::change::Change;
use super::config::reload_all;
use super::failure::Failure;
use super::out;
use super::session::settings;
use super::table::{harmless, harmless_line, listing};
use super::width::columns;
use crate::settings::edit::remove_token;
use crate::settings::{Flags, Loaded, Origin, SettingsFile};
use crate::token::fresh;
use clap::{Args, Subcommand};
use jiff::{Span, Timestamp, civil, tz::TimeZone};
use octo_model::{DEFAULT_TENANT, ToolError};
use octo_web::TokenSettings;
use serde_json::{Value, json};

/// Create, list and revoke bearer tokens.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  octoprox token new laptop\n  octoprox token list\n  octoprox token revoke laptop"
)]
pub struct Token {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    New(New),
    List(List),
    Revoke(Revoke),
}

/// Create a token. It is printed once, on standard output. The lines for the settings contain only its hash and go to
/// standard error.
#[derive(Args)]
#[command(after_help = "Examples:
  octoprox token new laptop
  octoprox token new ops --scope admin --expires 90d
  TOKEN=$(octoprox token new ci)")]
struct New {
    /// Name of the caller, in policy rules and the audit log
    #[arg(value_parser = token_name)]
    name: String,
    /// Tenant of the caller [default: default]
    #[arg(long, value_parser = token_name)]
    tenant: Option<String>,
    /// Scope beyond calling tools: `admin` manages servers and reads metrics. Can be repeated
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// Expiry: a duration such as `90d` or `12h`, a date, or a timestamp
    #[arg(long, value_name = "WHEN", value_parser = expiry)]
    expires: Option<Timestamp>,
    /// Print the token and its settings as JSON: {token, settings}
    #[arg(long)]
    json: bool,
}

/// List the tokens of the settings: name, scopes, expiry and origin. The tokens themselves cannot be shown.
#[derive(Args)]
#[command(after_help = "Examples:\n  octoprox token list\n  octoprox token list --json")]
struct List {
    /// Print the list as JSON: {tokens: [{name, tenant, scopes, expires, expired, origin}]}
    #[arg(long)]
    json: bool,
}

/// Takes a token out of the settings file and has running hubs reload: they refuse it at once, and end the calls and streams
/// that came with it.
#[derive(Args)]
#[command(after_help = "Example:\n  octoprox token revoke laptop")]
struct Revoke {
    /// Name of the token
    name: String,
    /// Print the result as JSON: {file, backup, hubs}
    #[arg(long)]
    json: bool,
}

impl Token {
    pub fn run(&self, flags: &Flags) -> Result<(), Failure> {
        match &self.command {
            Command::New(new) => new.run(),
            Command::List(list) => list.run(&settings(flags)?),
            Command::Revoke(revoke) => revoke.run(flags),
        }
    }
}

impl New {
    fn run(&self) -> Result<(), Failure> {
        let token = fresh().map_err(|_| Failure::new("The system gives no randomness. Try again."))?;
        let sha256 = octo_web::fingerprint(&token);
        let (name, scopes) = (&self.name, &self.scopes);
        if self.json {
            let tenant = self.tenant.as_deref().unwrap_or(DEFAULT_TENANT);
            let settings = json!({"name": name, "tenant": tenant, "sha256": sha256, "scopes": scopes,
                "expires": self.expires});
            return Ok(out::data(&json!({"token": token, "settings": settings}).to_string())?);
        }
        out::talk("The token, printed once. Clients send it as `Authorization: Bearer …`:");
        out::data(&token)?;
        out::talk("\nAdd to octoprox.yaml:\n");
        let mut lines = format!("auth:\n  tokens:\n    - name: {}\n      sha256: {sha256}", json!(name));
        if let Some(tenant) = &self.tenant {
            lines.push_str(&format!("\n      tenant: {}", json!(tenant)));
        }
        if !scopes.is_empty() {
            lines.push_str(&format!("\n      scopes: {}", json!(scopes)));
        }
        if let Some(expires) = self.expires {
            lines.push_str(&format!("\n      expires: {expires}"));
        }
        out::talk(&lines);
        Ok(())
    }
}

impl List {
    fn run(&self, loaded: &Loaded) -> Result<(), Failure> {
        let tokens = &loaded.settings.auth.tokens;
        let origin = |at: usize| loaded.layers.origin(&format!("auth.tokens[{at}]")).to_string();
        if self.json {
            let listed = |(at, token): (usize, &TokenSettings)| {
                json!({"name": token.name, "tenant": token.tenant, "scopes": token.scopes,
                    "expires": token.expires, "expired": is_expired(token), "origin": origin(at)})
            };
            let listed: Vec<Value> = tokens.iter().enumerate().map(listed).collect();
            return Ok(out::data(&json!({"tokens": listed}).to_string())?);
        }
        if tokens.is_empty() {
            out::talk("There are no tokens. Make one with `octoprox token new NAME`.");
            return Ok(());
        }
        let row = |(at, token): (usize, &TokenSettings)| {
            let expires = match token.expires {
                Some(at) if is_expired(token) => format!("expired {at}"),
                Some(at) => format!("until {at}"),
                None => "does not expire".to_owned(),
            };
            let scopes = if token.scopes.is_empty() {
                String::new()
            } else {
                format!("{}; ", token.scopes.join(", "))
            };
            let name = match token.tenant.as_str() {
                DEFAULT_TENANT => token.name.clone(),
                tenant => format!("{tenant}/{}", token.name),
            };
            (harmless_line(&name), harmless_line(&format!("{scopes}{expires}; {}", origin(at))))
        };
        let rows: Vec<(String, String)> = tokens.iter().enumerate().map(row).collect();
        Ok(out::data(&listing(&rows, columns()))?)
    }
}

impl Revoke {
    fn run(&self, flags: &Flags) -> Result<(), Failure> {
        let loaded = settings(flags)?;
        let tokens = &loaded.settings.auth.tokens;
        let Some(at) = tokens.iter().position(|token| token.name == self.name) else {
            return Err(ToolError::not_found(format!("There is no token `{}`.", self.name))
                .hint("List them with `octoprox token list`.")
                .into());
        };
        let path = match loaded.layers.origin(&format!("auth.tokens[{at}]")) {
            Origin::File(path) => path,
            origin => {
                return Err(Failure::invalid(format!(
                    "The token `{}` comes from {origin}. Unset it there and restart the hub.",
                    self.name
                )));
            }
        };
        let before = SettingsFile::open(&path).map_err(crate::settings::Problems::from)?.text().to_owned();
        let after = remove_token(&path, &before, &self.name).map_err(|why| {
            Failure::new(format!(
                "{}: {why}. Remove the token there by hand, then run `octoprox config reload`.",
                path.display()
            ))
        })?;
        let backup = Change { path: path.clone(), before: Some(before), after }.write()?;
        let reports = reload_all(&loaded)?;
        if self.json {
            let hubs: Vec<&String> = reports.iter().map(|(pid, _)| pid).collect();
            out::data(&json!({"file": path, "backup": backup, "hubs": hubs}).to_string())?;
        } else {
            let from = harmless(&path.display().to_string());
            out::data(&format!("Revoked {}: it is no longer in {from}.", self.name))?;
            match reports.len() {
                0 => out::talk("No hub is running with these settings."),
                _ => out::talk("Running hubs refuse it from now on."),
            }
        }
        for (pid, report) in &reports {
            report.warnings.iter().for_each(|warning| out::talk(&format!("hub {pid}: {warning}")));
        }
        match reports.iter().find_map(|(pid, report)| Some((pid, report.error.as_ref()?))) {
            Some((pid, error)) => Err(Failure::new(format!(
                "The hub {pid} has not reloaded and still accepts the token: {error} Restart it."
            ))),
            None => Ok(()),
        }
    }
}

fn is_expired(token: &TokenSettings) -> bool {
    token.expires.is_some_and(|expires| expires <= Timestamp::now())
}

/// The settings refuse other names.
fn token_name(name: &str) -> Result<String, String> {
    if name.is_empty() || name.contains('/') {
        return Err("use a name without a slash, such as `laptop`".to_owned());
    }
    Ok(name.to_owned())
}

/// A time from now, a date (at midnight UTC), or a timestamp.
fn expiry(text: &str) -> Result<Timestamp, String> {
    let now = Timestamp::now();
    let later = |span: Span| Some(now.to_zoned(TimeZone::UTC).checked_add(span).ok()?.timestamp());
    let date = |date: civil::Date| Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp());
    let read = text.parse::<Timestamp>().ok();
    let read = read.or_else(|| text.parse::<civil::Date>().ok().and_then(date));
    let read = read.or_else(|| text.parse::<Span>().ok().and_then(later));
    match read {
        Some(at) if at > now => Ok(at.round(jiff::Unit::Second).unwrap_or(at)),
        Some(at) => Err(format!("{at} is in the past")),
        None => {
            Err("write a time from now such as 90d, a date such as 2027-01-31, or a timestamp".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_a_token_ends() {
        assert_eq!(expiry("2190-01-31").unwrap().to_string(), "2190-01-31T00:00:00Z");
        assert_eq!(expiry("2190-01-31T12:00:00+02:00").unwrap().to_string(), "2190-01-31T10:00:00Z");
        let days = expiry("90d").unwrap().duration_since(Timestamp::now()).as_hours();
        assert!((90 * 24 - 1..=90 * 24).contains(&days), "{days}");
        for wrong in ["", "soon", "2020-01-01", "-3d", "0s", "2190-13-01"] {
            assert!(expiry(wrong).is_err(), "{wrong}");
        }
    }
}
