//! `octoprox token`: manages bearer tokens.

use crate::app_context::load_settings;
use crate::app_error::AppError;
use crate::bearer_token::generate_token;
use crate::cli::commands::config_command::reload_all;
use crate::cli::file_change::FileChange;
use crate::settings::edit::settings_edit::remove_token;
use crate::settings::{Flags, LoadedSettings, SettingOrigin, SettingsFile};
use crate::stores::shared_revocations::revoke_everywhere;
use crate::terminal::console;
use crate::terminal::terminal_width::columns;
use crate::terminal::text_table::{definition_list, sanitize_line, sanitize_text};
use clap::{Args, Subcommand};
use jiff::{Span, Timestamp, civil, tz::TimeZone};
use octo_model::{DEFAULT_TENANT, LOCAL_SUBJECT, ToolError};
use octo_web::TokenSettings;
use serde_json::{Value, json};

/// What a revocation in a shared database means.
const EVERYWHERE: &str = "All hubs that reach the shared database reject it within a second.";

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
    #[arg(value_parser = caller_name)]
    name: String,
    /// Tenant of the caller [default: default]
    #[arg(long, value_parser = token_name)]
    tenant: Option<String>,
    /// Scope beyond calling tools: `admin` manages servers and reads metrics. Can be repeated
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// Expiry: a duration such as `90d` or `12h`, a date, or a timestamp
    #[arg(long, value_name = "WHEN", value_parser = parse_expiry)]
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

/// Remove a token from the settings file and reload running hubs: they reject it at once, and end its calls and
/// streams.
///
/// With a shared database (store.postgres), all hubs that share it reject the token within a second, whatever their own
/// settings say. Otherwise the hubs of this machine do.
#[derive(Args)]
#[command(after_help = "Examples:
  octoprox token revoke laptop
  octoprox token revoke --sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")]
struct Revoke {
    /// Name of the token
    #[arg(required_unless_present = "sha256")]
    name: Option<String>,
    /// Revoke a token that these settings do not have at all hubs that share the database, by its `sha256`
    #[arg(long, value_name = "DIGEST", conflicts_with = "name", value_parser = token_digest)]
    sha256: Option<String>,
    /// Print the result as JSON: {file, backup, hubs, all_hubs}
    #[arg(long)]
    json: bool,
}

impl Token {
    pub fn run(&self, flags: &Flags) -> Result<(), AppError> {
        match &self.command {
            Command::New(new) => new.run(),
            Command::List(list) => list.run(&load_settings(flags)?),
            Command::Revoke(revoke) => revoke.run(flags),
        }
    }
}

impl New {
    fn run(&self) -> Result<(), AppError> {
        let token = generate_token()
            .map_err(|_| AppError::new("The system's random number generator failed. Try again."))?;
        let sha256 = octo_web::token_fingerprint(&token);
        let (name, scopes) = (&self.name, &self.scopes);
        if self.json {
            let tenant = self.tenant.as_deref().unwrap_or(DEFAULT_TENANT);
            let settings = json!({"name": name, "tenant": tenant, "sha256": sha256, "scopes": scopes,
                "expires": self.expires});
            return Ok(console::print(&json!({"token": token, "settings": settings}).to_string())?);
        }
        console::print_err("The token is printed only once. Clients send it as `Authorization: Bearer …`:");
        console::print(&token)?;
        console::print_err("\nAdd to octoprox.yaml:\n");
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
        console::print_err(&lines);
        Ok(())
    }
}

impl List {
    fn run(&self, loaded: &LoadedSettings) -> Result<(), AppError> {
        let tokens = &loaded.settings.auth.tokens;
        let origin = |at: usize| loaded.layers.origin(&format!("auth.tokens[{at}]")).to_string();
        if self.json {
            let listed = |(at, token): (usize, &TokenSettings)| {
                json!({"name": token.name, "tenant": token.tenant, "scopes": token.scopes,
                    "expires": token.expires, "expired": is_expired(token), "origin": origin(at)})
            };
            let listed: Vec<Value> = tokens.iter().enumerate().map(listed).collect();
            return Ok(console::print(&json!({"tokens": listed}).to_string())?);
        }
        if tokens.is_empty() {
            console::print_err("No tokens configured. Create one with `octoprox token new NAME`.");
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
            (sanitize_line(&name), sanitize_line(&format!("{scopes}{expires}; {}", origin(at))))
        };
        let rows: Vec<(String, String)> = tokens.iter().enumerate().map(row).collect();
        Ok(console::print(&definition_list(&rows, columns()))?)
    }
}

impl Revoke {
    fn run(&self, flags: &Flags) -> Result<(), AppError> {
        let loaded = load_settings(flags)?;
        match (&self.name, &self.sha256) {
            (_, Some(sha256)) => self.revoke_digest(&loaded, sha256),
            (Some(name), None) => self.revoke_name(&loaded, name),
            (None, None) => Err(AppError::invalid("Name a token.")),
        }
    }

    fn revoke_digest(&self, loaded: &LoadedSettings, sha256: &str) -> Result<(), AppError> {
        if !revoke_everywhere(&loaded.settings, sha256, "")? {
            return Err(AppError::invalid(
                "--sha256 needs a database that hubs share. Set store.postgres, or name the token.",
            ));
        }
        if self.json {
            return Ok(console::print(&json!({"hubs": [], "all_hubs": true}).to_string())?);
        }
        Ok(console::print(&format!("Revoked {sha256}. {EVERYWHERE}"))?)
    }

    fn revoke_name(&self, loaded: &LoadedSettings, name: &str) -> Result<(), AppError> {
        let tokens = &loaded.settings.auth.tokens;
        let found = tokens.iter().enumerate().find(|(_, token)| token.name == name);
        let Some((at, token)) = found else {
            return Err(ToolError::not_found(format!("Token not found: `{name}`."))
                .hint("List them with `octoprox token list`.")
                .into());
        };
        // First, because it reaches most, and because the digest is in the settings only until they are changed.
        let everywhere = revoke_everywhere(&loaded.settings, &token.sha256, name);
        let is_everywhere = matches!(everywhere, Ok(true));
        let path = match loaded.layers.origin(&format!("auth.tokens[{at}]")) {
            SettingOrigin::File(path) => path,
            origin if is_everywhere => {
                return Ok(console::print(&format!(
                    "Revoked {name}. {EVERYWHERE} It comes from {origin}: unset it there, too."
                ))?);
            }
            origin => {
                everywhere?;
                return Err(AppError::invalid(format!(
                    "The token `{name}` comes from {origin}. Unset it there and restart the hub."
                )));
            }
        };
        let before =
            SettingsFile::open(&path).map_err(crate::settings::SettingsProblems::from)?.text().to_owned();
        let after = remove_token(&path, &before, name).map_err(|why| {
            AppError::new(format!(
                "{}: {why}. Remove the token there by hand, then run `octoprox config reload`.",
                path.display()
            ))
        })?;
        let backup = FileChange { path: path.clone(), before: Some(before), after }.write()?;
        let reports = reload_all(loaded)?;
        if self.json {
            let hubs: Vec<&String> = reports.iter().map(|(pid, _)| pid).collect();
            let result = json!({"file": path, "backup": backup, "hubs": hubs, "all_hubs": is_everywhere});
            console::print(&result.to_string())?;
        } else {
            let from = sanitize_text(&path.display().to_string());
            console::print(&format!("Revoked {name} and removed it from {from}."))?;
            console::print_err(match reports.len() {
                _ if is_everywhere => EVERYWHERE,
                0 => {
                    "No hub is running with these settings on this machine. Hubs on other machines, or with other settings, may still accept it."
                }
                _ => {
                    "Running hubs on this machine now reject it. Hubs on other machines, or with other settings, may still accept it: remove it there, too."
                }
            });
        }
        for (pid, report) in &reports {
            report.warnings.iter().for_each(|warning| console::print_err(&format!("hub {pid}: {warning}")));
        }
        if let Err(error) = everywhere {
            return Err(AppError::new(format!(
                "The shared database could not be written, so hubs on other machines may still accept the token: {} \
                 Run `octoprox token revoke --sha256 {}` when it can be reached.",
                error.text(),
                token.sha256
            )));
        }
        match reports.iter().find_map(|(pid, report)| Some((pid, report.error.as_ref()?))) {
            // It refuses the token all the same.
            Some((pid, error)) if is_everywhere => {
                Err(AppError::new(format!("Hub {pid} failed to reload: {error} Restart it.")))
            }
            Some((pid, error)) => Err(AppError::new(format!(
                "Hub {pid} failed to reload and still accepts the token: {error} Restart it."
            ))),
            None => Ok(()),
        }
    }
}

fn is_expired(token: &TokenSettings) -> bool {
    token.expires.is_some_and(|expires| expires <= Timestamp::now())
}

fn token_digest(digest: &str) -> Result<String, String> {
    let is_digest = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest.then(|| digest.to_ascii_lowercase()).ok_or_else(|| "use 64 hexadecimal digits".to_owned())
}

/// Rejects names that the settings do not allow.
fn caller_name(name: &str) -> Result<String, String> {
    if name == LOCAL_SUBJECT {
        return Err(format!("`{LOCAL_SUBJECT}` is the user who runs the hub; use another name"));
    }
    token_name(name)
}

fn token_name(name: &str) -> Result<String, String> {
    if name.is_empty() || name.contains('/') {
        return Err("use a name without a slash, such as `laptop`".to_owned());
    }
    Ok(name.to_owned())
}

/// Parses a duration from now, a date (at midnight UTC), or a timestamp.
fn parse_expiry(text: &str) -> Result<Timestamp, String> {
    let now = Timestamp::now();
    let later = |span: Span| Some(now.to_zoned(TimeZone::UTC).checked_add(span).ok()?.timestamp());
    let date = |date: civil::Date| Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp());
    let read = text.parse::<Timestamp>().ok();
    let read = read.or_else(|| text.parse::<civil::Date>().ok().and_then(date));
    let read = read.or_else(|| text.parse::<Span>().ok().and_then(later));
    match read {
        Some(at) if at > now => Ok(at.round(jiff::Unit::Second).unwrap_or(at)),
        Some(at) => Err(format!("{at} is in the past")),
        None => Err("use a duration such as 90d, a date such as 2027-01-31, or a timestamp".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_a_token_ends() {
        assert_eq!(parse_expiry("2190-01-31").unwrap().to_string(), "2190-01-31T00:00:00Z");
        assert_eq!(parse_expiry("2190-01-31T12:00:00+02:00").unwrap().to_string(), "2190-01-31T10:00:00Z");
        let days = parse_expiry("90d").unwrap().duration_since(Timestamp::now()).as_hours();
        assert!((90 * 24 - 1..=90 * 24).contains(&days), "{days}");
        for wrong in ["", "soon", "2020-01-01", "-3d", "0s", "2190-13-01"] {
            assert!(parse_expiry(wrong).is_err(), "{wrong}");
        }
    }
}
