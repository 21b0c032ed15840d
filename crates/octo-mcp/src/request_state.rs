//! Request state that travels through the client: encrypted, bound to caller and request, and short-lived.

use aws_lc_rs::aead::{AES_256_GCM, Aad, RandomizedNonceKey};
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use octo_model::{Caller, JsonObject};
use octo_toolkit::Clock;
use serde::{Deserialize, Serialize};
use serde_json::Value;

const STATE_TTL_SECONDS: i64 = 900;

/// Content of a request state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequestState {
    /// A call suspended in this process.
    Suspended(u128),
    /// State of an upstream, to be returned to it; it may have sent none.
    Upstream(Option<String>),
}

#[derive(Serialize, Deserialize)]
struct SealedState {
    state: RequestState,
    expires: i64,
}

pub struct StateSealer(RandomizedNonceKey);

impl StateSealer {
    /// The key is derived from two random UUIDs, because the library's own generator takes 100 ms to warm up and most
    /// processes never seal anything.
    pub fn new() -> Result<Self, std::io::Error> {
        let mut seed = [uuid::Uuid::new_v4().into_bytes(), uuid::Uuid::new_v4().into_bytes()].concat();
        seed.extend_from_slice(b"octoprox request state");
        RandomizedNonceKey::new(&AES_256_GCM, digest(&SHA256, &seed).as_ref())
            .map(Self)
            .map_err(|_| std::io::Error::other("cannot create the sealing key"))
    }

    pub fn seal(&self, state: RequestState, bound: &[u8]) -> Option<String> {
        let mut text = serde_json::to_vec(&SealedState { state, expires: now() + STATE_TTL_SECONDS }).ok()?;
        let nonce = self.0.seal_in_place_append_tag(Aad::from(bound), &mut text).ok()?;
        let mut whole = nonce.as_ref().to_vec();
        whole.extend_from_slice(&text);
        Some(URL_SAFE_NO_PAD.encode(whole))
    }

    /// Returns `None` for a state that was modified, has expired, or belongs to another caller or request.
    pub fn open(&self, state: &str, bound: &[u8]) -> Option<RequestState> {
        let whole = URL_SAFE_NO_PAD.decode(state).ok()?;
        let (nonce, text) = whole.split_at_checked(12)?;
        let nonce = aws_lc_rs::aead::Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut text = text.to_vec();
        let plain = self.0.open_in_place(nonce, Aad::from(bound), &mut text).ok()?;
        let sealed: SealedState = serde_json::from_slice(plain).ok()?;
        (sealed.expires >= now()).then_some(sealed.state)
    }
}

fn now() -> i64 {
    Clock::system().now().as_second()
}

/// Digest of principal, profile, method and arguments.
pub fn binding_digest(caller: &Caller, profile: &str, method: &str, params: &JsonObject) -> Vec<u8> {
    let mut text = String::new();
    let name = params.text("name").or_else(|| params.text("uri")).unwrap_or_default();
    for part in [&caller.principal.tenant, &caller.principal.subject, profile, method, &name] {
        text.push_str(&part.len().to_string());
        text.push(':');
        text.push_str(part);
    }
    if let Some(arguments) = params.get("arguments").and_then(|json| json.to::<Value>().ok()) {
        write_canonical(&arguments, &mut text);
    }
    digest(&SHA256, text.as_bytes()).as_ref().to_vec()
}

/// The same text for the same value, regardless of the order of members.
fn write_canonical(value: &Value, into: &mut String) {
    match value {
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by_key(|(key, _)| key.as_str());
            into.push('{');
            for (key, value) in sorted {
                into.push_str(&Value::from(key.as_str()).to_string());
                into.push(':');
                write_canonical(value, into);
                into.push(',');
            }
            into.push('}');
        }
        Value::Array(items) => {
            into.push('[');
            for item in items {
                write_canonical(item, into);
                into.push(',');
            }
            into.push(']');
        }
        other => into.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_only_for_the_same_caller_and_request() {
        let seal = StateSealer::new().unwrap();
        let params = |text: &'static str| JsonObject::parse(text).unwrap();
        let anna = Caller::named("anna");
        let here =
            binding_digest(&anna, "", "tools/call", &params(r#"{"name":"a","arguments":{"x":1,"y":2}}"#));
        let state = seal.seal(RequestState::Upstream(Some("s".into())), &here).unwrap();
        let same = binding_digest(
            &anna,
            "",
            "tools/call",
            &params(r#"{"arguments":{"y":2,"x":1},"name":"a","inputResponses":{}}"#),
        );
        assert_eq!(seal.open(&state, &same), Some(RequestState::Upstream(Some("s".into()))));
        for (caller, profile, method, text) in [
            (Caller::named("eve"), "", "tools/call", r#"{"name":"a","arguments":{"x":1,"y":2}}"#),
            (anna.clone(), "p", "tools/call", r#"{"name":"a","arguments":{"x":1,"y":2}}"#),
            (anna.clone(), "", "prompts/get", r#"{"name":"a","arguments":{"x":1,"y":2}}"#),
            (anna.clone(), "", "tools/call", r#"{"name":"b","arguments":{"x":1,"y":2}}"#),
            (anna.clone(), "", "tools/call", r#"{"name":"a","arguments":{"x":1,"y":3}}"#),
        ] {
            let other = binding_digest(&caller, profile, method, &params(text));
            assert_eq!(seal.open(&state, &other), None);
        }
        assert_eq!(seal.open(&format!("{state}-TAMPERED"), &here), None);
        assert_eq!(seal.open("", &here), None);
    }
}
