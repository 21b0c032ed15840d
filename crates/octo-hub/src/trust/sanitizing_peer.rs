//! A peer that removes hidden text from what a server sends to the client: requests, progress and logs.

use super::sanitize;
use octo_model::JsonObject;
use octo_toolkit::{AskError, BoxFuture, Peer};
use std::sync::Arc;

pub struct SanitizingPeer(pub Arc<dyn Peer>);

impl Peer for SanitizingPeer {
    fn capabilities(&self) -> &JsonObject {
        self.0.capabilities()
    }

    /// Messages that cannot be sanitized are dropped.
    fn notify(&self, method: &str, params: JsonObject) {
        if let Some(params) = sanitize::sanitize_params(&params) {
            self.0.notify(method, params);
        }
    }

    fn ask<'a>(&'a self, method: &'a str, params: JsonObject) -> BoxFuture<'a, Result<JsonObject, AskError>> {
        match sanitize::sanitize_params(&params) {
            Some(params) => self.0.ask(method, params),
            None => Box::pin(async { Err(AskError::Unable) }),
        }
    }

    fn task_started(&self) {
        self.0.task_started();
    }

    fn key(&self) -> u64 {
        self.0.key()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Default)]
    struct RecordingPeer {
        none: JsonObject,
        messages: Mutex<Vec<String>>,
    }

    impl Peer for RecordingPeer {
        fn capabilities(&self) -> &JsonObject {
            &self.none
        }

        fn notify(&self, method: &str, params: JsonObject) {
            self.messages.lock().unwrap().push(format!("{method} {}", params.to_json()));
        }

        fn ask<'a>(
            &'a self,
            method: &'a str,
            params: JsonObject,
        ) -> BoxFuture<'a, Result<JsonObject, AskError>> {
            self.notify(method, params);
            Box::pin(async { Ok(JsonObject::new()) })
        }

        fn key(&self) -> u64 {
            7
        }
    }

    #[tokio::test]
    async fn what_servers_tell_and_ask_is_cleaned() {
        let heard = Arc::new(RecordingPeer::default());
        let washed = SanitizingPeer(Arc::clone(&heard) as Arc<dyn Peer>);
        let params = |text: &str| JsonObject::new().with("message", text).with("_meta", "t\u{200b}");
        washed.notify("notifications/progress", params("half\u{e0041} done"));
        washed.ask("elicitation/create", params("Your\u{202e} name?")).await.unwrap();
        let twins = JsonObject::parse("{\"data\":{\"a\":1,\"a\u{200b}\":2}}".to_owned()).unwrap();
        washed.notify("notifications/message", twins.clone());
        assert!(matches!(washed.ask("elicitation/create", twins).await, Err(AskError::Unable)));
        let said = heard.messages.lock().unwrap();
        assert_eq!(
            *said,
            [
                "notifications/progress {\"message\":\"half done\",\"_meta\":\"t\u{200b}\"}",
                "elicitation/create {\"message\":\"Your name?\",\"_meta\":\"t\u{200b}\"}"
            ]
        );
        assert_eq!(washed.key(), 7);
    }
}
