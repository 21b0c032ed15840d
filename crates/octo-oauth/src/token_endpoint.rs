//! Requests to a token endpoint, and their responses.

use crate::auth_http::AuthHttp;
use crate::challenge::parse_scopes;
use crate::oauth_client::OAuthClient;
use bytes::Bytes;
use http::StatusCode;
use octo_model::Secret;
use octo_model::{Kind, ToolError};
use serde::Deserialize;
use serde_json::Value;

/// Longer tokens do not fit into a header.
const MAX_TOKEN_LEN: usize = 32 << 10;
/// Maximum accepted lifetime of a token.
const MAX_LIFETIME_SECS: i64 = 366 * 24 * 3600;

/// Issued tokens.
#[derive(Debug)]
pub(crate) struct TokenResponse {
    pub(crate) access: Secret,
    pub(crate) refresh: Option<Secret>,
    /// In seconds.
    pub(crate) lifetime: Option<i64>,
    /// Granted scopes, if they differ from the requested ones.
    pub(crate) scopes: Option<Vec<String>>,
}

/// Why no tokens were issued.
#[derive(Debug)]
pub(crate) enum TokenError {
    /// Denied by the server, with its error code.
    Denied(String),
    /// The outcome at the server is unknown.
    Unavailable(ToolError),
}

impl From<ToolError> for TokenError {
    fn from(error: ToolError) -> Self {
        Self::Unavailable(error)
    }
}

impl TokenError {
    pub(crate) fn has_code(&self, code: &str) -> bool {
        matches!(self, Self::Denied(known) if known == code)
    }

    /// Error for a person who logs in.
    pub(crate) fn into_error(self) -> ToolError {
        match self {
            Self::Unavailable(error) => error,
            Self::Denied(code) => {
                ToolError::new(Kind::Unauthorized, format!("The login was refused ({code})."))
                    .hint("Start the login again.")
            }
        }
    }
}

#[derive(Deserialize)]
struct TokenBody {
    access_token: Secret,
    token_type: String,
    expires_in: Option<Value>,
    refresh_token: Option<Secret>,
    scope: Option<String>,
}

#[derive(Deserialize)]
struct ErrorBody {
    error: String,
}

/// Requests tokens with the grant in `form`; adds the client authentication.
pub(crate) async fn request_tokens<'a>(
    web: &AuthHttp<'_>,
    endpoint: &str,
    client: &'a OAuthClient,
    mut form: Vec<(&'a str, &'a str)>,
) -> Result<TokenResponse, TokenError> {
    let authorization = client.authenticate(&mut form);
    let (status, body) = web.post_form(endpoint, &form, authorization).await?;
    parse_response(status, &body)
}

fn parse_response(status: StatusCode, body: &Bytes) -> Result<TokenResponse, TokenError> {
    if !status.is_success() {
        return Err(parse_error(status, body));
    }
    // Some servers return errors with status 200.
    let Ok(given) = serde_json::from_slice::<TokenBody>(body) else {
        return Err(parse_error(status, body));
    };
    let fits = |secret: &Secret| {
        let text = secret.expose();
        !text.is_empty() && text.len() <= MAX_TOKEN_LEN && text.bytes().all(|byte| byte.is_ascii_graphic())
    };
    let is_bearer = given.token_type.eq_ignore_ascii_case("bearer");
    if !is_bearer || !fits(&given.access_token) || given.refresh_token.as_ref().is_some_and(|one| !fits(one))
    {
        return Err(TokenError::Unavailable(
            ToolError::unavailable("The authorization server issued an unusable token.")
                .hint("This is a defect of that server."),
        ));
    }
    Ok(TokenResponse {
        access: given.access_token,
        refresh: given.refresh_token,
        lifetime: given.expires_in.as_ref().and_then(parse_seconds),
        scopes: given.scope.as_deref().map(parse_scopes),
    })
}

/// A number, or a number as text.
pub(crate) fn parse_seconds(value: &Value) -> Option<i64> {
    let number = match value {
        Value::Number(number) => number.as_i64().or_else(|| number.as_f64().map(|seconds| seconds as i64)),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    number.map(|number| number.clamp(0, MAX_LIFETIME_SECS))
}

fn parse_error(status: StatusCode, body: &Bytes) -> TokenError {
    let code = serde_json::from_slice::<ErrorBody>(body).ok().map(|denied| denied.error);
    let code = code.filter(|code| {
        (1..=64).contains(&code.len())
            && code.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.:/".contains(&byte))
    });
    match code {
        Some(code) if status.is_success() || status.is_client_error() => TokenError::Denied(code),
        _ => TokenError::Unavailable(
            ToolError::unavailable(format!(
                "The authorization server returned HTTP status {}.",
                status.as_u16()
            ))
            .hint("Try again later."),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn given(status: u16, body: Value) -> Result<TokenResponse, TokenError> {
        parse_response(StatusCode::from_u16(status).unwrap(), &body.to_string().into())
    }

    #[test]
    fn an_answer_is_read_as_far_as_it_can_be_trusted() {
        let full = json!({"access_token": "a", "token_type": "bEARER", "expires_in": "60", "refresh_token": "r", "scope": "x y"});
        let tokens = given(200, full).unwrap();
        assert_eq!((tokens.access.expose(), tokens.lifetime), ("a", Some(60)));
        assert_eq!(tokens.refresh.unwrap().expose(), "r");
        assert_eq!(tokens.scopes.unwrap(), ["x", "y"]);
        for (expires, life) in [
            (json!(3600.5), Some(3600)),
            (json!(-1), Some(0)),
            (json!(1e300), Some(MAX_LIFETIME_SECS)),
            (json!([]), None),
        ] {
            let body = json!({"access_token": "a", "token_type": "Bearer", "expires_in": expires});
            assert_eq!(given(200, body).unwrap().lifetime, life, "{expires}");
        }
        for body in [
            json!({"access_token": "a", "token_type": "DPoP"}),
            json!({"access_token": "a"}),
            json!({"access_token": "", "token_type": "Bearer"}),
            json!({"access_token": "a\r\nX: y", "token_type": "Bearer"}),
            json!({"access_token": "a", "token_type": "Bearer", "refresh_token": "x".repeat(MAX_TOKEN_LEN + 1)}),
            json!("a"),
        ] {
            assert!(matches!(given(200, body.clone()), Err(TokenError::Unavailable(_))), "{body}");
        }
    }

    #[test]
    fn a_refusal_keeps_its_code_and_nothing_else() {
        for (status, body, code) in [
            (400, json!({"error": "invalid_grant", "error_description": "\u{1b}[2J"}), Some("invalid_grant")),
            (401, json!({"error": "invalid_client"}), Some("invalid_client")),
            (200, json!({"error": "authorization_pending"}), Some("authorization_pending")),
            (500, json!({"error": "invalid_grant"}), None),
            (400, json!({"error": "<script>"}), None),
            (400, json!({"error": "x".repeat(65)}), None),
            (400, json!("no"), None),
        ] {
            let refused = given(status, body.clone()).unwrap_err();
            match code {
                Some(code) => assert!(refused.has_code(code), "{refused:?}"),
                None => assert!(matches!(refused, TokenError::Unavailable(_)), "{body}"),
            }
        }
    }
}
