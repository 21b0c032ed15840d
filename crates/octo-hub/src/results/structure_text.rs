//! Text of a result that the hub has changed.

use octo_model::Json;
use octo_toolkit::plain_text::plain_text;

/// The structure as text. Servers say what theirs is in JSON, so theirs stays JSON.
pub fn structure_text(structure: &Json, is_native: bool) -> String {
    let text = if is_native { plain_text(structure) } else { None };
    text.unwrap_or_else(|| structure.as_str().to_owned())
}
