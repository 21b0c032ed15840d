//! Excerpts of arguments for logs, traces and the audit log: opt-in, truncated and redacted.

use super::redactor::Redactor;
use crate::settings::{Settings, is_secret_name};
use octo_hub::Excerpts;
use octo_model::{Json, MASK};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum length of an excerpt of arguments or of a result.
pub const MAX_EXCERPT_BYTES: usize = 4 << 10;
/// Larger arguments are not parsed for secret names; only their beginning is used.
const MAX_PARSED_BYTES: usize = 256 << 10;
/// Argument that completes a login: a secret that cannot be known in advance.
const LOGIN_ANSWER_ARGUMENT: &str = "answer";

/// Where excerpts are included, according to the current settings.
pub struct ArgumentExcerpts {
    redactor: Arc<Redactor>,
    log: AtomicBool,
    audit: AtomicBool,
}

impl ArgumentExcerpts {
    pub fn new(redactor: Arc<Redactor>, settings: &Settings) -> Self {
        let contents = Self { redactor, log: AtomicBool::default(), audit: AtomicBool::default() };
        contents.update(settings);
        contents
    }

    /// Applies changed settings.
    pub fn update(&self, settings: &Settings) {
        self.log.store(settings.telemetry.log_arguments, Ordering::Relaxed);
        self.audit.store(settings.audit.arguments, Ordering::Relaxed);
    }
}

impl Excerpts for ArgumentExcerpts {
    fn for_log(&self, arguments: &Json) -> Option<String> {
        self.log.load(Ordering::Relaxed).then(|| argument_excerpt(&self.redactor, arguments))
    }

    fn for_audit(&self, arguments: &Json) -> Option<String> {
        self.audit.load(Ordering::Relaxed).then(|| argument_excerpt(&self.redactor, arguments))
    }
}

/// Returns an excerpt of arguments. Masks values under secret names, known secrets and strings that look like secrets.
pub fn argument_excerpt(redactor: &Redactor, arguments: &Json) -> String {
    let parsed =
        (arguments.bytes().len() <= MAX_PARSED_BYTES).then(|| arguments.to::<Value>().ok()).flatten();
    match parsed {
        Some(mut value) => {
            mask_secrets(&mut value, false);
            redactor.excerpt(&value.to_string(), MAX_EXCERPT_BYTES)
        }
        // Secret names cannot be found without parsing.
        None => format!("({} bytes)", arguments.bytes().len()),
    }
}

fn mask_secrets(value: &mut Value, secret: bool) {
    match value {
        Value::Object(members) => members.iter_mut().for_each(|(name, value)| {
            mask_secrets(value, secret || name == LOGIN_ANSWER_ARGUMENT || is_secret_name(name));
        }),
        Value::Array(items) => items.iter_mut().for_each(|item| mask_secrets(item, secret)),
        Value::Null => {}
        value if secret => *value = Value::from(MASK),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nothing_secret_is_shown() {
        let redactor = Redactor::new(["canary-5150".to_owned()]);
        let arguments = json!({
            "path": "a.txt", "password": "hunter2", "answer": "code-1", "n": 5, "none": null,
            "headers": {"Authorization": "x-1", "X-Api-Key": ["x-2", {"deep": "x-3"}], "Accept": "json"},
            "note": "uses canary-5150 here", "keyboard": "us",
        });
        let shown = argument_excerpt(&redactor, &Json::of(&arguments));
        for secret in ["hunter2", "code-1", "x-1", "x-2", "x-3", "canary"] {
            assert!(!shown.contains(secret), "{secret}: {shown}");
        }
        let mut large = arguments;
        large["text"] = json!("x".repeat(MAX_PARSED_BYTES));
        assert!(super::argument_excerpt(&redactor, &Json::of(&large)).ends_with(" bytes)"));
        for plain in ["a.txt", "\"n\":5", "json", "\"us\""] {
            assert!(shown.contains(plain), "{plain}: {shown}");
        }
    }
}
