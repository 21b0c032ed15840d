//! From a model's source to a script: types removed, wrapped in an async function, positions kept.

use super::strip_types::strip_types;
use crate::message::ReportedError;

/// One line before the program, so that `return` and `await` work at its top level.
const PREFIX: &str = "(async () => {\n";
/// On a line of its own, since a program may end with a comment.
const SUFFIX: &str = "\n})()";

/// The script that runs a program.
pub fn prepare(source: &str) -> Result<String, ReportedError> {
    let plain = strip_types(source)?;
    Ok(format!("{PREFIX}{plain}{SUFFIX}"))
}
