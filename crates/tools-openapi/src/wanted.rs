//! The operation that a caller means: by its name, by its path template, or by a path with values in it.

use octo_openapi::{Document, Operation};
use octo_toolkit::{Kind, ToolError};
use serde_json::{Map, Value};

pub struct Wanted {
    pub operation: Operation,
    /// Values that stood in the path.
    pub filled: Map<String, Value>,
}

impl Wanted {
    pub fn find(
        document: &Document,
        id: Option<&str>,
        path: Option<&str>,
        method: Option<&str>,
    ) -> Result<Self, ToolError> {
        match (id, path, method) {
            (Some(id), None, None) => {
                Ok(Self { operation: document.operation_of_id(id)?, filled: Map::new() })
            }
            (None, Some(path), Some(method)) => Self::at(document, path, method),
            (Some(id), path, method) => {
                let named = document.operation_of_id(id)?;
                let found = Self::at(document, path.unwrap_or(&named.path), method.unwrap_or(&named.method))?;
                if (&found.operation.path, &found.operation.method) == (&named.path, &named.method) {
                    return Ok(found);
                }
                let (method, path) = (named.method, named.path);
                Err(ToolError::invalid(format!("`{}` is {method} {path}.", named.id))
                    .hint("Give operation_id alone, or path and method."))
            }
            (None, ..) => Err(ToolError::invalid("It is not clear which operation is meant.")
                .hint("Give path and method, or operation_id.")),
        }
    }

    fn at(document: &Document, path: &str, method: &str) -> Result<Self, ToolError> {
        match document.operation(path, method) {
            Ok(operation) => Ok(Self { operation, filled: Map::new() }),
            Err(error) if error.kind == Kind::NotFound => {
                let found = document.operation_of_filled(path, method)?.ok_or(error)?;
                Ok(Self { operation: found.operation, filled: found.values })
            }
            Err(error) => Err(error),
        }
    }
}
