//! A client that records notifications and answers questions.

use octo_model::{BoxFuture, JsonObject, RpcError};
use octo_toolkit::{AskError, Peer};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

pub struct TestPeer {
    pub capabilities: JsonObject,
    pub notifications: Mutex<Vec<(String, String)>>,
    pub task_started: AtomicBool,
}

impl Default for TestPeer {
    fn default() -> Self {
        let capabilities = JsonObject::parse(r#"{"elicitation":{"form":{}},"vendor":1.50}"#).unwrap();
        Self { capabilities, notifications: Mutex::default(), task_started: AtomicBool::new(false) }
    }
}

impl Peer for TestPeer {
    fn capabilities(&self) -> &JsonObject {
        &self.capabilities
    }

    fn notify(&self, method: &str, params: JsonObject) {
        let text = params.to_json().as_str().to_owned();
        self.notifications.lock().unwrap().push((method.to_owned(), text));
    }

    fn ask<'a>(&'a self, method: &'a str, params: JsonObject) -> BoxFuture<'a, Result<JsonObject, AskError>> {
        Box::pin(async move {
            match params.text("want").as_deref() {
                Some("refuse") => {
                    Err(AskError::Refused(RpcError { code: -1, message: "No.".to_owned(), data: None }))
                }
                Some("unable") => Err(AskError::Unable),
                Some("gone") => Err(AskError::Gone),
                Some("never") => std::future::pending().await,
                _ => Ok(params.with("method", method)),
            }
        })
    }

    fn task_started(&self) {
        self.task_started.store(true, Ordering::SeqCst);
    }

    fn key(&self) -> u64 {
        u64::MAX - 1
    }
}
