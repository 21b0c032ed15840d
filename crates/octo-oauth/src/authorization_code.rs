//! Authorization code flow: PKCE, `state`, the authorization URL, and the callback.

use crate::issuer::Issuer;
use crate::login_spec::RESERVED_AUTHORIZE_PARAMS;
use crate::oauth_client::OAuthClient;
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use octo_model::{Kind, Principal, ToolError};
use octo_model::{Secret, exposed_secret};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use url::Url;

/// Longer answers are rejected.
const MAX_ANSWER_LEN: usize = 16 << 10;

/// Everything needed to complete a pending login. Stored encrypted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LoginFlow {
    /// Who started it.
    pub(crate) by: Principal,
    /// URL of the server.
    pub(crate) url: String,
    pub(crate) issuer: Issuer,
    pub(crate) client: OAuthClient,
    pub(crate) scopes: Vec<String>,
    pub(crate) resource: String,
    pub(crate) way: LoginFlowKind,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum LoginFlowKind {
    Browser {
        #[serde(with = "exposed_secret")]
        verifier: Secret,
        redirect: String,
    },
    Device {
        #[serde(with = "exposed_secret")]
        code: Secret,
        interval: u64,
    },
}

/// 256 random bits, as text that needs no escaping.
pub(crate) fn random_token() -> Result<String, ToolError> {
    let mut bytes = [0; 32];
    rand::fill(&mut bytes).map_err(|_| ToolError::internal("no random bytes available"))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Hash under which a secret text is stored or compared.
pub(crate) fn sha256_base64(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, text.as_bytes()))
}

/// URL that a person opens.
pub(crate) fn authorization_url(
    endpoint: Url,
    started: &LoginFlow,
    verifier: &Secret,
    redirect: &str,
    state: &str,
    extra: &BTreeMap<String, String>,
) -> String {
    let mut url = endpoint;
    let scope = started.scopes.join(" ");
    url.query_pairs_mut()
        .append_pair("response_type", "code")
        .append_pair("client_id", &started.client.id)
        .append_pair("redirect_uri", redirect)
        .append_pair("state", state)
        .append_pair("code_challenge", &sha256_base64(verifier.expose()))
        .append_pair("code_challenge_method", "S256")
        .append_pair("resource", &started.resource);
    if !scope.is_empty() {
        url.query_pairs_mut().append_pair("scope", &scope);
    }
    for (name, value) in extra.iter().filter(|(name, _)| !RESERVED_AUTHORIZE_PARAMS.contains(&name.as_str()))
    {
        url.query_pairs_mut().append_pair(name, value);
    }
    // Without a consent prompt there is no offline access, and no refresh token.
    let asks_for_later = started.scopes.iter().any(|scope| scope == "offline_access");
    if asks_for_later && !extra.contains_key("prompt") {
        url.query_pairs_mut().append_pair("prompt", "consent");
    }
    url.into()
}

/// Parameters of the callback.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CallbackParams {
    pub(crate) code: Option<String>,
    pub(crate) state: Option<String>,
    pub(crate) iss: Option<String>,
    pub(crate) error: Option<String>,
}

impl CallbackParams {
    /// Parses the query of the callback URL.
    pub(crate) fn parse(query: &str) -> Result<Self, ToolError> {
        if query.len() > MAX_ANSWER_LEN {
            return Err(unreadable_answer());
        }
        let mut read = Self::default();
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            let place = match name.as_ref() {
                "code" => &mut read.code,
                "state" => &mut read.state,
                "iss" => &mut read.iss,
                "error" => &mut read.error,
                _ => continue,
            };
            if place.replace(value.into_owned()).is_some() {
                return Err(unreadable_answer());
            }
        }
        Ok(read)
    }

    /// The response must come from the requested issuer, compared exactly. If the issuer promises the `iss` parameter,
    /// its absence is a mismatch, too.
    pub(crate) fn check_issuer(&self, issuer: &Issuer) -> Result<(), ToolError> {
        let promised = issuer.authorization_response_iss_parameter_supported;
        match &self.iss {
            Some(iss) if *iss == issuer.issuer => Ok(()),
            None if !promised => Ok(()),
            _ => Err(ToolError::denied("The login was answered by another authorization server.")
                .hint("Nothing was sent to either. Start the login again.")),
        }
    }

    /// Returns the code, or why there is none. Call it after the issuer was checked: messages of strangers are not
    /// repeated.
    pub(crate) fn into_code(self) -> Result<String, ToolError> {
        match (self.code, self.error) {
            (Some(code), None) if !code.is_empty() => Ok(code),
            (_, Some(error)) if error == "access_denied" => {
                Err(ToolError::new(Kind::Unauthorized, "The login was declined.")
                    .hint("Start it again, and agree to the request."))
            }
            (_, Some(_)) => Err(ToolError::new(Kind::Unauthorized, "The authorization server refused the login.")
                .hint("Start it again; if it fails again, check the server's `scopes` and `client_id` in the settings.")),
            _ => Err(unreadable_answer()),
        }
    }
}

/// Pasted text: the callback URL, a part of it, or the code alone.
pub(crate) enum PastedAnswer {
    Redirect(CallbackParams),
    Code(String),
}

pub(crate) fn parse_pasted(text: &str, redirect: &str) -> Result<PastedAnswer, ToolError> {
    let text = text.trim();
    if text.len() > MAX_ANSWER_LEN {
        return Err(unreadable_answer());
    }
    if text.contains("://") {
        let (url, own) = (Url::parse(text).map_err(|_| unreadable_answer())?, Url::parse(redirect).ok());
        if !own.is_some_and(|own| own.origin() == url.origin() && own.path() == url.path()) {
            return Err(ToolError::invalid("That is not the callback URL of the login.")
                .hint("Copy the full URL of the last page, even if the browser could not open it."));
        }
        return CallbackParams::parse(url.query().unwrap_or_default()).map(PastedAnswer::Redirect);
    }
    if text.contains("code=") || text.contains("error=") {
        return CallbackParams::parse(text.trim_start_matches('?')).map(PastedAnswer::Redirect);
    }
    let is_code = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_code { Ok(PastedAnswer::Code(text.to_owned())) } else { Err(unreadable_answer()) }
}

fn unreadable_answer() -> ToolError {
    ToolError::invalid("That is not the answer to a login.")
        .hint("Copy the full URL of the last page, even if the browser could not open it.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oauth_client::ClientAuth;

    fn issuer(promises: bool) -> Issuer {
        Issuer {
            issuer: "https://a.example".into(),
            authorization_response_iss_parameter_supported: promises,
            ..Issuer::default()
        }
    }

    #[test]
    fn the_issuer_is_compared_letter_by_letter() {
        for (promises, iss, accepted) in [
            (true, Some("https://a.example"), true),
            (true, None, false),
            (true, Some("https://b.example"), false),
            (true, Some("https://a.example/"), false),
            (true, Some("https://A.example"), false),
            (true, Some("https://a.example:443"), false),
            (true, Some(""), false),
            (false, Some("https://a.example"), true),
            (false, None, true),
            (false, Some("https://b.example"), false),
        ] {
            let back = CallbackParams { iss: iss.map(ToOwned::to_owned), ..CallbackParams::default() };
            assert_eq!(back.check_issuer(&issuer(promises)).is_ok(), accepted, "{promises} {iss:?}");
        }
    }

    #[test]
    fn what_comes_back_is_read_once_and_whole() {
        let back = CallbackParams::parse("code=a%20b&state=s&iss=https%3A%2F%2Fa.example&x=1").unwrap();
        assert_eq!(back.iss.as_deref(), Some("https://a.example"));
        assert_eq!(back.into_code().unwrap(), "a b");
        for query in ["code=a&code=b", "state=a&state=a", "iss=a&iss=b", "error=a&error=b"] {
            assert!(CallbackParams::parse(query).is_err(), "{query}");
        }
        assert!(CallbackParams::parse(&"x".repeat(MAX_ANSWER_LEN + 1)).is_err());
        for (query, part) in [
            ("error=access_denied", "declined"),
            ("error=<b>&code=x", "refused"),
            ("state=x", "not the answer"),
        ] {
            let error = CallbackParams::parse(query).unwrap().into_code().unwrap_err();
            assert!(error.message.contains(part) && !error.text().contains("<b>"), "{error}");
        }
    }

    #[test]
    fn a_pasted_address_must_be_the_one_that_the_login_leads_back_to() {
        let own = "http://localhost:3100/auth/callback";
        let read = |text: &str| match parse_pasted(text, own) {
            Ok(PastedAnswer::Code(code)) => format!("code {code}"),
            Ok(PastedAnswer::Redirect(back)) => format!("back {}", back.code.unwrap_or_default()),
            Err(error) => error.kind.as_str().to_owned(),
        };
        for (text, expected) in [
            (" http://localhost:3100/auth/callback?code=x&state=s ", "back x"),
            ("?code=x&state=s", "back x"),
            ("code=x&state=s", "back x"),
            ("abc-123", "code abc-123"),
            ("http://evil.example/auth/callback?code=x", "invalid"),
            ("http://localhost:3100/other?code=x", "invalid"),
            ("https://localhost:3100/auth/callback?code=x", "invalid"),
            ("http://localhost:3100@evil.example/auth/callback?code=x", "invalid"),
            ("", "invalid"),
            ("two words", "invalid"),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn the_address_to_open_carries_everything() {
        let started = LoginFlow {
            by: Principal::new("t", "s"),
            url: "https://x.example/mcp".into(),
            issuer: issuer(true),
            client: OAuthClient { id: "me&you".into(), secret: None, proof: ClientAuth::Public },
            scopes: vec!["a".into(), "offline_access".into()],
            resource: "https://x.example/mcp".into(),
            way: LoginFlowKind::Device { code: Secret::default(), interval: 5 },
        };
        let endpoint: Url = "https://a.example/authorize?tenant=1".parse().unwrap();
        // The pair of RFC 7636, appendix B.
        let verifier = Secret::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        let addressed = |extra: &[(&str, &str)]| -> Url {
            let extra = extra.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            authorization_url(endpoint.clone(), &started, &verifier, "http://localhost/cb", "st", &extra)
                .parse()
                .unwrap()
        };
        let url = addressed(&[]);
        let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        for (name, value) in [
            ("tenant", "1"),
            ("response_type", "code"),
            ("client_id", "me&you"),
            ("redirect_uri", "http://localhost/cb"),
            ("state", "st"),
            ("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"),
            ("code_challenge_method", "S256"),
            ("resource", "https://x.example/mcp"),
            ("scope", "a offline_access"),
            ("prompt", "consent"),
        ] {
            assert!(pairs.contains(&(name.into(), value.into())), "{name} in {url}");
        }
        // Parameters from the settings; none that the hub sets occurs twice.
        let url = addressed(&[("access_type", "offline"), ("prompt", "select_account"), ("state", "evil")]);
        let named = |wanted: &str| -> Vec<String> {
            url.query_pairs()
                .filter(|(name, _)| name == wanted)
                .map(|(_, value)| value.into_owned())
                .collect()
        };
        assert_eq!(named("access_type"), ["offline"]);
        assert_eq!(named("prompt"), ["select_account"], "the settings know better than the hub");
        assert_eq!(named("state"), ["st"]);
        assert_ne!(random_token().unwrap(), random_token().unwrap());
        assert_eq!(random_token().unwrap().len(), 43);
    }
}
