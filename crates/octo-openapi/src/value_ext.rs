//! Members of JSON values by name; null if missing.

use serde_json::Value;

static NULL: Value = Value::Null;

pub(crate) trait ValueExt {
    fn member(&self, name: &str) -> &Value;
}

impl ValueExt for Value {
    fn member(&self, name: &str) -> &Value {
        self.get(name).unwrap_or(&NULL)
    }
}
