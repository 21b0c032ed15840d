//! A call of a legacy client that waits for an answer between two calls of an upstream. Nothing runs meanwhile, so any
//! front can continue it.

use octo_model::{Json, JsonObject, Method};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ParkedCall {
    method: String,
    /// As of the last call.
    pub params: JsonObject,
    /// Its result, which requires input.
    pub result: JsonObject,
    /// Answers so far.
    pub answers: JsonObject,
    /// Key of the question that is asked.
    pub key: String,
}

impl ParkedCall {
    pub fn new(
        method: Method,
        params: JsonObject,
        result: JsonObject,
        answers: JsonObject,
        key: &str,
    ) -> Self {
        Self { method: method.as_str().to_owned(), params, result, answers, key: key.to_owned() }
    }

    pub fn method(&self) -> &str {
        &self.method
    }

    pub fn to_text(&self) -> String {
        Json::of(self).as_str().to_owned()
    }

    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}
