//! Server of a login: a server of the settings, or the URL of a bridge.

use crate::app_context::AppContext;
use crate::app_error::AppError;
use crate::cli::commands::bridge_command::remote_url;
use crate::gateway::login_spec;

use crate::settings::Environment;
use crate::stores::stores_with_logins;
use octo_model::nearest;
use octo_model::{Caller, Kind, ToolError};
use octo_oauth::{
    Auth, ClientIdentity, CompletedLogin, Flow, LoginPrompt, LoginSharing, LoginSnapshot, LoginSpec,
    LoginStatus, Logins, LogoutOutcome,
};
use octo_ports::{Credentials, Owner};

pub struct LoginTarget {
    /// Key in the credential store.
    pub server: String,
    pub display_name: String,
    pub logins: Logins,
    store: Credentials,
    owner: Owner,
    caller: Caller,
}

impl LoginTarget {
    /// Finds the server. Registers all servers of the settings, since a callback may belong to the login of another
    /// one.
    pub fn find(
        session: &AppContext,
        server: &str,
        profile: Option<&str>,
        device: bool,
        redirect: String,
    ) -> Result<Self, AppError> {
        let settings = &session.loaded.settings;
        let stores = stores_with_logins(settings, &Environment::current())?;
        let logins = Logins::new(&stores, ClientIdentity::new(redirect))?;
        for (name, entry) in &settings.servers {
            if let Some(spec) = login_spec::login_spec(name, entry, &session.net) {
                logins.register(spec);
            }
        }
        let mut spec = if server.contains("://") {
            let url = remote_url(server, profile)?;
            LoginSpec { net: session.net.clone(), ..LoginSpec::oauth(&url, &url) }
        } else {
            if profile.is_some() {
                return Err(AppError::invalid("--profile requires the URL of a hub. Remove it."));
            }
            let entry = settings.servers.get(server).ok_or_else(|| unknown_server(session, server))?;
            login_spec::login_spec(server, entry, &session.net).ok_or_else(|| no_login_needed(server))?
        };
        if device && let Auth::OAuth(oauth) = &mut spec.auth {
            oauth.flow = Flow::Device;
        }
        let caller = Caller::local();
        let owner = match spec.sharing {
            LoginSharing::Shared => Owner::Shared,
            LoginSharing::PerCaller => Owner::from(&caller),
        };
        let key = spec.server.clone();
        logins.register(spec);
        Ok(Self { display_name: key.clone(), server: key, logins, store: stores.credentials, owner, caller })
    }

    pub async fn begin(&self) -> Result<LoginPrompt, ToolError> {
        self.logins.begin(&self.caller, &self.server).await
    }

    pub async fn complete(&self, answer: &str) -> Result<CompletedLogin, ToolError> {
        self.logins.complete(&self.caller, &self.server, answer).await
    }

    /// Completes a login with the query string of the callback URL.
    pub async fn finish_callback(logins: &Logins, query: &str) -> Result<CompletedLogin, ToolError> {
        logins.callback(query, Some(&Caller::local())).await
    }

    pub async fn status(&self) -> Result<LoginStatus, ToolError> {
        self.logins.status(&self.caller, &self.server).await
    }

    pub async fn logout(&self) -> Result<LogoutOutcome, ToolError> {
        self.logins.logout(&self.caller, &self.server).await
    }

    /// Cancels the pending login. An earlier login is kept.
    pub async fn cancel(&self) -> Result<(), ToolError> {
        let now = jiff::Timestamp::now().as_second();
        if let Some(waiting) = self.store.find_pending(&self.owner, &self.server, now).await? {
            self.store.take_pending(&waiting.id, now).await?;
        }
        Ok(())
    }

    pub async fn snapshot(&self) -> Result<LoginSnapshot, ToolError> {
        self.logins.snapshot(&self.caller, &self.server).await
    }

    /// The error for a login that is no longer pending and did not succeed.
    pub fn failed_error(&self, why: Option<String>) -> ToolError {
        let why = why.unwrap_or_else(|| "The login was declined, or started again elsewhere.".to_owned());
        ToolError::new(Kind::Unauthorized, why)
            .hint(format!("Run `octoprox login {}` again.", self.display_name))
    }
}

fn unknown_server(session: &AppContext, server: &str) -> AppError {
    let names = session.loaded.settings.servers.keys().map(String::as_str);
    let hint = match nearest(server, names) {
        Some(close) => format!("Did you mean `{close}`?"),
        None => {
            "Run `octoprox servers list` to see the servers, or `octoprox servers add` to add one.".to_owned()
        }
    };
    ToolError::not_found(format!("Server not found in the settings: `{server}`.")).hint(hint).into()
}

fn no_login_needed(server: &str) -> AppError {
    AppError::invalid(format!(
        "`{server}` has no login configured. If it requires one, add `auth` to its entry, such as \
         `auth: {{type: oauth2-pkce}}`. Keys in the settings need no login."
    ))
}
