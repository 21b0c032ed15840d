//! Token revocation (RFC 7009).

use crate::auth_http::AuthHttp;
use crate::login_spec::LoginSpec;
use crate::token_set::TokenSet;

/// Revokes the refresh token first: the tokens derived from it end with it.
pub(crate) async fn revoke(spec: &LoginSpec, tokens: &TokenSet) -> bool {
    let Some(source) = &tokens.source else { return false };
    let Some(endpoint) = &source.revocation_endpoint else { return false };
    let secrets = [(tokens.refresh.as_ref(), "refresh_token"), (Some(&tokens.access), "access_token")];
    let mut told = false;
    for (secret, kind) in secrets {
        let Some(secret) = secret.filter(|secret| !secret.is_empty()) else { continue };
        let mut form = vec![("token", secret.expose()), ("token_type_hint", kind)];
        let authorization = source.client.authenticate(&mut form);
        let answer = AuthHttp::new(spec).post_form(endpoint, &form, authorization).await;
        told |= answer.is_ok_and(|(status, _)| status.is_success());
    }
    told
}
