//! Connection strings, in both PostgreSQL formats.

use crate::Net;
use octo_model::{Secret, ToolError};
use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::config::{Config, Host, TargetSessionAttrs};

/// For connecting, TLS and login together, unless the connection string sets one.
const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Address, credentials and TLS mode. Has no `Debug`.
#[derive(Clone)]
pub(super) struct Login {
    pub hosts: Vec<(DbHost, u16)>,
    pub user: String,
    pub password: Option<Secret>,
    pub database: String,
    pub options: Option<String>,
    pub tls: Tls,
    pub connect_timeout: Duration,
    pub net: Net,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DbHost {
    Tcp(String),
    UnixSocket(PathBuf),
}

/// `sslmode`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tls {
    Off,
    /// Uses TLS if offered, without checking the certificate: protects against eavesdropping, not against
    /// impersonation.
    IfOffered,
    /// Requires a certificate that matches the host, signed by a root of the machine or of this file.
    Verified(Option<PathBuf>),
}

impl Login {
    /// An error names the connection and never a part of its text.
    pub fn parse(name: &str, dsn: &Secret, net: &Net) -> Result<Self, ToolError> {
        let refuse = |what: &str| {
            ToolError::invalid(format!("The connection string of the database `{name}` {what}."))
                .hint("Use postgres://user:password@host:5432/database?sslmode=require.")
        };
        let (text, ssl) = take_ssl(dsn.expose());
        let config: Config = text.parse().map_err(|_| refuse("is malformed"))?;
        if config.get_target_session_attrs() != TargetSessionAttrs::Any {
            return Err(refuse("has target_session_attrs, which is not supported"));
        }
        let tls = match (ssl.mode.as_deref(), ssl.root) {
            (Some("disable"), _) => Tls::Off,
            (None | Some("allow" | "prefer"), None) => Tls::IfOffered,
            (None | Some("require" | "verify-ca" | "verify-full"), root) => {
                Tls::Verified(root.map(PathBuf::from))
            }
            _ => return Err(refuse("has an unknown sslmode")),
        };
        let user = config
            .get_user()
            .filter(|user| !user.is_empty())
            .ok_or_else(|| refuse("names no user"))?
            .to_owned();
        let password = config.get_password().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let hosts = hosts(&config);
        if hosts.is_empty() {
            return Err(refuse("names no host"));
        }
        Ok(Self {
            hosts,
            database: config.get_dbname().unwrap_or(&user).to_owned(),
            user,
            password: password.map(Secret::new),
            options: config.get_options().map(str::to_owned),
            tls,
            connect_timeout: config.get_connect_timeout().copied().unwrap_or(DEFAULT_CONNECT_TIMEOUT),
            net: net.clone(),
        })
    }

    /// The hosts, without secrets.
    pub fn host_text(&self) -> String {
        let one = |(place, port): &(DbHost, u16)| match place {
            DbHost::Tcp(host) => format!("{host}:{port}"),
            DbHost::UnixSocket(_) => "local socket".to_owned(),
        };
        self.hosts.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

fn hosts(config: &Config) -> Vec<(DbHost, u16)> {
    let ports = config.get_ports();
    let port = |at: usize| match ports {
        [one] => *one,
        several => several.get(at).copied().unwrap_or(5432),
    };
    let places = config.get_hosts().iter().map(|host| match host {
        Host::Tcp(host) => DbHost::Tcp(host.clone()),
        Host::Unix(folder) => DbHost::UnixSocket(folder.clone()),
    });
    places.enumerate().map(|(at, place)| (place, port(at))).collect()
}

#[derive(Default)]
struct Ssl {
    mode: Option<String>,
    root: Option<String>,
}

/// Removes the parameters that the parser does not know.
fn take_ssl(dsn: &str) -> (String, Ssl) {
    let mut ssl = Ssl::default();
    let mut keep = |part: &&str| match part.split_once('=') {
        Some(("sslmode", mode)) => {
            ssl.mode = Some(mode.to_owned());
            false
        }
        Some(("sslrootcert", file)) => {
            let file = file.trim_matches('\'');
            let file = url::form_urlencoded::parse(format!("f={}", file.replace('+', "%2B")).as_bytes())
                .next()
                .map_or_else(String::new, |(_, value)| value.into_owned());
            // `system` is the default without a file.
            ssl.root = (file != "system").then_some(file);
            false
        }
        _ => true,
    };
    let rest = match dsn.split_once('?') {
        Some((start, query)) if dsn.contains("://") => {
            let query: Vec<&str> = query.split('&').filter(&mut keep).collect();
            format!("{start}?{}", query.join("&")).trim_end_matches('?').to_owned()
        }
        _ if dsn.contains("://") => dsn.to_owned(),
        _ => dsn.split_whitespace().filter(&mut keep).collect::<Vec<_>>().join(" "),
    };
    (rest, ssl)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(dsn: &str) -> Result<Login, ToolError> {
        Login::parse("shop", &Secret::new(dsn), &Net::default())
    }

    #[test]
    fn both_forms_say_where_and_as_whom() {
        for (dsn, host, user, database, tls) in [
            ("postgres://ann:pw@db/shop", "db:5432", "ann", "shop", Tls::IfOffered),
            ("postgresql://ann@db:6000", "db:6000", "ann", "ann", Tls::IfOffered),
            ("postgres://ann@a,b:6/x?sslmode=disable", "a:5432, b:6", "ann", "x", Tls::Off),
            ("postgres://ann@[::1]:7/x?sslmode=require", "::1:7", "ann", "x", Tls::Verified(None)),
            (
                "postgres://ann@h/x?sslmode=verify-full&connect_timeout=3",
                "h:5432",
                "ann",
                "x",
                Tls::Verified(None),
            ),
            (
                "postgres://ann@h/x?sslrootcert=%2Fetc%2Fca.pem&sslmode=verify-ca",
                "h:5432",
                "ann",
                "x",
                Tls::Verified(Some("/etc/ca.pem".into())),
            ),
            ("postgres://ann@h/x?sslrootcert=system", "h:5432", "ann", "x", Tls::IfOffered),
            ("host=h user=ann dbname=x sslmode=require", "h:5432", "ann", "x", Tls::Verified(None)),
            ("host=/run/pg user=ann", "local socket", "ann", "ann", Tls::IfOffered),
            ("postgres:///x?host=/run/pg&user=ann", "local socket", "ann", "x", Tls::IfOffered),
        ] {
            let login = parse(dsn).unwrap_or_else(|error| panic!("{dsn}: {error}"));
            assert_eq!((login.host_text().as_str(), login.user.as_str()), (host, user), "{dsn}");
            assert_eq!((login.database.as_str(), &login.tls), (database, &tls), "{dsn}");
        }
    }

    #[test]
    fn an_error_repeats_nothing_of_the_text() {
        for dsn in [
            "postgres://ann:hunter2@h:hunter2/x",
            "mysql://ann:hunter2@h/x",
            "postgres://ann:hunter2@h/x?sslmode=maybe",
            "postgres://ann:hunter2@h/x?target_session_attrs=read-write",
            "postgres://:hunter2@h/x",
            "user=ann password=hunter2",
            "hunter2",
        ] {
            let error = parse(dsn).err().unwrap_or_else(|| panic!("{dsn}"));
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
            assert!(error.message.contains("shop"), "{error}");
        }
    }
}
