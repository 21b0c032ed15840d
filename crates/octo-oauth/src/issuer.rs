//! Metadata of an authorization server, as far as a login needs it.

use crate::auth_http::{AuthHttp, display_url};
use crate::same_site::is_same_site;
use octo_model::ToolError;
use serde::{Deserialize, Serialize};
use url::Url;

pub(crate) const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Issuer {
    pub(crate) issuer: String,
    pub(crate) authorization_endpoint: Option<String>,
    pub(crate) token_endpoint: Option<String>,
    pub(crate) registration_endpoint: Option<String>,
    pub(crate) revocation_endpoint: Option<String>,
    pub(crate) device_authorization_endpoint: Option<String>,
    pub(crate) code_challenge_methods_supported: Option<Vec<String>>,
    pub(crate) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    pub(crate) grant_types_supported: Option<Vec<String>>,
    pub(crate) scopes_supported: Option<Vec<String>>,
    pub(crate) client_id_metadata_document_supported: bool,
    pub(crate) authorization_response_iss_parameter_supported: bool,
}

impl Issuer {
    /// Validates all URLs, or rejects the metadata as a whole. Codes and secrets stay within the issuer's own site,
    /// unless the settings name the issuer: otherwise it could show people another provider's page and intercept what
    /// that page returns.
    pub(crate) fn validate(self, web: &AuthHttp<'_>) -> Result<Self, ToolError> {
        let all = [
            &self.authorization_endpoint,
            &self.token_endpoint,
            &self.registration_endpoint,
            &self.revocation_endpoint,
            &self.device_authorization_endpoint,
        ];
        for address in all.into_iter().flatten() {
            self.own_site_url(web, address)?;
        }
        Ok(self)
    }

    /// Checks a URL: on the issuer's own site, or any if the settings name the issuer.
    pub(crate) fn own_site_url(&self, web: &AuthHttp<'_>, address: &str) -> Result<Url, ToolError> {
        let url = web.checked_page(address)?;
        if web.is_configured_issuer(&self.issuer) || is_same_site(&web.checked_url(&self.issuer)?, &url) {
            return Ok(url);
        }
        Err(foreign_endpoint(&self.issuer, address))
    }

    /// Host that receives the authorization code.
    pub(crate) fn code_host(&self) -> String {
        let url = self.token_endpoint.as_deref().and_then(|url| Url::parse(url).ok());
        url.and_then(|url| url.host_str().map(ToOwned::to_owned)).unwrap_or_default()
    }

    /// Whether a person can log in with a browser.
    pub(crate) fn supports_code(&self) -> bool {
        self.authorization_endpoint.is_some() && self.allows_grant_type("authorization_code")
    }

    pub(crate) fn supports_device(&self) -> bool {
        self.device_authorization_endpoint.is_some() && self.allows_grant_type(DEVICE_GRANT)
    }

    fn allows_grant_type(&self, grant: &str) -> bool {
        self.grant_types_supported.as_ref().is_none_or(|all| all.iter().any(|one| one == grant))
    }

    /// Whether a code is useless to others who intercept it.
    pub(crate) fn supports_pkce(&self) -> bool {
        self.code_challenge_methods_supported.as_ref().is_some_and(|all| all.iter().any(|one| one == "S256"))
    }

    pub(crate) fn supports_scope(&self, scope: &str) -> bool {
        self.scopes_supported.as_ref().is_some_and(|all| all.iter().any(|one| one == scope))
    }

    pub(crate) fn token_endpoint(&self) -> Result<&str, ToolError> {
        self.token_endpoint.as_deref().ok_or_else(|| {
            ToolError::unavailable("The authorization server has no token endpoint.")
                .hint("Its metadata is wrong; its operator must fix it.")
        })
    }
}

fn foreign_endpoint(issuer: &str, address: &str) -> ToolError {
    ToolError::denied(format!(
        "The authorization server {} forwards logins to {}, which is another site.",
        display_url(issuer),
        display_url(address)
    ))
    .hint(format!(
        "Nothing was sent to either. If both belong together, name the authorization server in the server's `auth`: `issuer: {}`.",
        display_url(issuer).trim_matches('`')
    ))
}
