//! The workflow file format. The text was validated against the schema before, so deserialization cannot fail
//! on its form.

use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Debug, Deserialize)]
pub struct WorkflowManifest {
    pub name: String,
    #[serde(default)]
    pub params: Map<String, Value>,
    pub steps: Vec<StepManifest>,
    #[serde(default)]
    pub outputs: Map<String, Value>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Param {
    #[serde(default, rename = "type")]
    pub kind: ParamType,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub required: bool,
    #[serde(default)]
    pub default: Option<Value>,
    #[serde(default, rename = "enum")]
    pub choices: Vec<Value>,
}

impl Param {
    pub fn schema(&self) -> Value {
        let mut schema = serde_json::json!({"type": self.kind.as_str()});
        if let Value::Object(members) = &mut schema {
            if !self.description.is_empty() {
                members.insert("description".to_owned(), self.description.as_str().into());
            }
            if !self.choices.is_empty() {
                members.insert("enum".to_owned(), self.choices.clone().into());
            }
        }
        schema
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParamType {
    #[default]
    String,
    Integer,
    Number,
    Boolean,
    Array,
    Object,
}

impl ParamType {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Array => "array",
            Self::Object => "object",
        }
    }
}

#[derive(Debug, Deserialize)]
pub struct StepManifest {
    pub id: String,
    #[serde(default)]
    pub tool: Option<String>,
    #[serde(default)]
    pub with: Map<String, Value>,
    #[serde(default)]
    pub llm: Option<Llm>,
    #[serde(default)]
    pub steps: Option<Vec<StepManifest>>,
    #[serde(default)]
    pub parallel: Option<Vec<Vec<StepManifest>>>,
    #[serde(default)]
    pub fail: Option<String>,
    #[serde(default, rename = "if")]
    pub condition: Option<Value>,
    #[serde(default)]
    pub for_each: Option<Value>,
    #[serde(default = "default_item_name", rename = "as")]
    pub name: String,
    #[serde(default = "default_concurrency")]
    pub concurrency: usize,
    #[serde(default)]
    pub retry: Option<Retry>,
    #[serde(default)]
    pub timeout_seconds: Option<f64>,
    #[serde(default)]
    pub on_error: OnError,
    #[serde(default)]
    pub repeat: Repeat,
}

fn default_item_name() -> String {
    "item".to_owned()
}

const fn default_concurrency() -> usize {
    1
}

#[derive(Debug, Deserialize)]
pub struct Llm {
    pub prompt: String,
    #[serde(default)]
    pub system: String,
    #[serde(default)]
    pub schema: Option<Value>,
    #[serde(default = "default_max_tokens")]
    pub max_tokens: u64,
}

const fn default_max_tokens() -> u64 {
    2_000
}

#[derive(Debug, Clone, Deserialize)]
pub struct Retry {
    pub times: u32,
    #[serde(default = "default_delay_seconds")]
    pub delay_seconds: f64,
    #[serde(default = "default_backoff")]
    pub backoff: f64,
    #[serde(default = "default_retry_kinds")]
    pub on: Vec<String>,
}

const fn default_delay_seconds() -> f64 {
    1.0
}

const fn default_backoff() -> f64 {
    2.0
}

fn default_retry_kinds() -> Vec<String> {
    vec!["unavailable".to_owned(), "timeout".to_owned()]
}

#[derive(Debug, Default, Deserialize)]
#[serde(untagged)]
pub enum OnError {
    Keyword(OnErrorKeyword),
    Steps {
        steps: Vec<StepManifest>,
    },
    #[default]
    Unset,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnErrorKeyword {
    Fail,
    Continue,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Repeat {
    #[default]
    Never,
    Allowed,
}
