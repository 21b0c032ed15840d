//! Request state that travels through the client: encrypted, bound to caller and request, and short-lived.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use octo_model::{Caller, JsonObject, Secret, hex};
use octo_ports::{KEY_LEN, Keyring, Seal};
use octo_toolkit::Clock;
use serde::{Deserialize, Serialize};
use serde_json::Value;

const STATE_TTL_SECONDS: i64 = 900;

/// Content of a request state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequestState {
    /// A call suspended in the process of a node, which has no name if it is the only one.
    Suspended { ticket: u128, node: String },
    /// State of an upstream, to be returned to it; it may have sent none.
    Upstream(Option<String>),
}

#[derive(Serialize, Deserialize)]
struct SealedState {
    state: RequestState,
    expires: i64,
}

pub struct StateSealer(Keyring);

impl StateSealer {
    /// With a key for the lifetime of this process. It is derived from two random UUIDs, because the library's own
    /// generator takes 100 ms to warm up and most processes never seal anything.
    pub fn new() -> Result<Self, std::io::Error> {
        let mut seed = [uuid::Uuid::new_v4().into_bytes(), uuid::Uuid::new_v4().into_bytes()].concat();
        seed.extend_from_slice(b"octoprox request state");
        let key: Option<[u8; KEY_LEN]> = digest(&SHA256, &seed).as_ref().try_into().ok();
        let current = key.and_then(|key| Seal::new(&key).ok());
        let current = current.ok_or_else(|| std::io::Error::other("cannot create the sealing key"))?;
        Ok(Self(Keyring { current, previous: Vec::new() }))
    }

    /// With the keys that all fronts have.
    pub fn with_keys(keys: Keyring) -> Self {
        Self(keys)
    }

    pub fn seal_text(&self, text: &str, bound: &str) -> Option<String> {
        let sealed = self.0.current.seal(text, &[bound]).ok()?;
        Some(URL_SAFE_NO_PAD.encode(sealed.bytes()))
    }

    /// Returns `None` for a text that was modified, or sealed for something else.
    pub fn open_text(&self, sealed: &str, bound: &str) -> Option<Secret> {
        let sealed = Secret::from_bytes(URL_SAFE_NO_PAD.decode(sealed).ok()?);
        let keys = [&self.0.current].into_iter().chain(&self.0.previous);
        keys.into_iter().find_map(|key| key.unseal(&sealed, &[bound]))
    }

    pub fn seal(&self, state: RequestState, bound: &[u8]) -> Option<String> {
        let text = serde_json::to_string(&SealedState { state, expires: now() + STATE_TTL_SECONDS }).ok()?;
        self.seal_text(&text, &hex(bound))
    }

    /// Returns `None` for a state that was modified, has expired, or belongs to another caller or request.
    pub fn open(&self, state: &str, bound: &[u8]) -> Option<RequestState> {
        let plain = self.open_text(state, &hex(bound))?;
        let sealed: SealedState = serde_json::from_str(plain.expose()).ok()?;
        (sealed.expires >= now()).then_some(sealed.state)
    }
}

pub(crate) fn now() -> i64 {
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
