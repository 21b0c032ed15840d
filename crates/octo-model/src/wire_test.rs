//! Check of a type's JSON form.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Checks that a value has this JSON form and survives the way there and back.
pub fn assert_wire_form<T: Serialize + DeserializeOwned>(value: &T, text: &str) {
    assert_eq!(serde_json::to_string(value).unwrap(), text);
    let back: T = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&back).unwrap(), text);
}
