//! State that travels through the client and comes back: sealed, bound to who and what, and short-lived.

use aws_lc_rs::aead::{AES_256_GCM, Aad, RandomizedNonceKey};
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use octo_model::{Caller, JsonObject};
use octo_toolkit::Clock;
use serde::{Deserialize, Serialize};
use serde_json::Value;

const LIFE_SECONDS: i64 = 900;

/// What a request state stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Held {
    /// A call that waits in this process.
    Parked(u128),
    /// An upstream's own state, to be handed back to it; it may have given none.
    Upstream(Option<String>),
}

#[derive(Serialize, Deserialize)]
struct Sealed {
    held: Held,
    until: i64,
}

pub struct Seal(RandomizedNonceKey);

impl Seal {
    /// The key comes from the system by way of two random UUIDs, since the library's own generator takes a tenth of a
    /// second to warm up and most processes never seal anything.
    pub fn new() -> Result<Self, std::io::Error> {
        let mut seed = [uuid::Uuid::new_v4().into_bytes(), uuid::Uuid::new_v4().into_bytes()].concat();
        seed.extend_from_slice(b"octoprox request state");
        RandomizedNonceKey::new(&AES_256_GCM, digest(&SHA256, &seed).as_ref())
            .map(Self)
            .map_err(|_| std::io::Error::other("the sealing key cannot be made"))
    }

    pub fn close(&self, held: Held, bound: &[u8]) -> Option<String> {
        let mut text = serde_json::to_vec(&Sealed { held, until: now() + LIFE_SECONDS }).ok()?;
        let nonce = self.0.seal_in_place_append_tag(Aad::from(bound), &mut text).ok()?;
        let mut whole = nonce.as_ref().to_vec();
        whole.extend_from_slice(&text);
        Some(URL_SAFE_NO_PAD.encode(whole))
    }

    /// Nothing for a state that was changed, is too old, or belongs to another caller or request.
    pub fn open(&self, state: &str, bound: &[u8]) -> Option<Held> {
        let whole = URL_SAFE_NO_PAD.decode(state).ok()?;
        let (nonce, text) = whole.split_at_checked(12)?;
        let nonce = aws_lc_rs::aead::Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut text = text.to_vec();
        let plain = self.0.open_in_place(nonce, Aad::from(bound), &mut text).ok()?;
        let sealed: Sealed = serde_json::from_slice(plain).ok()?;
        (sealed.until >= now()).then_some(sealed.held)
    }
}

fn now() -> i64 {
    Clock::system().now().as_second()
}

/// Principal, profile, method and arguments, in one digest.
pub fn bound(caller: &Caller, profile: &str, method: &str, params: &JsonObject) -> Vec<u8> {
    let mut text = String::new();
    let name = params.text("name").or_else(|| params.text("uri")).unwrap_or_default();
    for part in [&caller.principal.tenant, &caller.principal.subject, profile, method, &name] {
        text.push_str(&part.len().to_string());
        text.push(':');
        text.push_str(part);
    }
    if let Some(arguments) = params.get("arguments").and_then(|json| json.to::<Value>().ok()) {
        canonical(&arguments, &mut text);
    }
    digest(&SHA256, text.as_bytes()).as_ref().to_vec()
}

/// The same text for the same value, whatever the order of its members.
fn canonical(value: &Value, into: &mut String) {
    match value {
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by_key(|(key, _)| key.as_str());
            into.push('{');
            for (key, value) in sorted {
                into.push_str(&Value::from(key.as_str()).to_string());
                into.push(':');
                canonical(value, into);
                into.push(',');
            }
            into.push('}');
        }
        Value::Array(items) => {
            into.push('[');
            for item in items {
                canonical(item, into);
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
        let seal = Seal::new().unwrap();
        let params = |text: &'static str| JsonObject::parse(text).unwrap();
        let anna = Caller::named("anna");
        let here = bound(&anna, "", "tools/call", &params(r#"{"name":"a","arguments":{"x":1,"y":2}}"#));
        let state = seal.close(Held::Upstream(Some("s".into())), &here).unwrap();
        let same = bound(
            &anna,
            "",
            "tools/call",
            &params(r#"{"arguments":{"y":2,"x":1},"name":"a","inputResponses":{}}"#),
        );
        assert_eq!(seal.open(&state, &same), Some(Held::Upstream(Some("s".into()))));
        for (caller, profile, method, text) in [
            (Caller::named("eve"), "", "tools/call", r#"{"name":"a","arguments":{"x":1,"y":2}}"#),
            (anna.clone(), "p", "tools/call", r#"{"name":"a","arguments":{"x":1,"y":2}}"#),
            (anna.clone(), "", "prompts/get", r#"{"name":"a","arguments":{"x":1,"y":2}}"#),
            (anna.clone(), "", "tools/call", r#"{"name":"b","arguments":{"x":1,"y":2}}"#),
            (anna.clone(), "", "tools/call", r#"{"name":"a","arguments":{"x":1,"y":3}}"#),
        ] {
            let other = bound(&caller, profile, method, &params(text));
            assert_eq!(seal.open(&state, &other), None);
        }
        assert_eq!(seal.open(&format!("{state}-TAMPERED"), &here), None);
        assert_eq!(seal.open("", &here), None);
    }
}
