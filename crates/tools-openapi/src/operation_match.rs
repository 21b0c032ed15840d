//! Finds the operation that a caller means: by id, by path template, or by a path with values.

use octo_openapi::{ApiOperation, Document};
use octo_toolkit::{Kind, ToolError};
use serde_json::{Map, Value};

pub struct OperationMatch {
    pub operation: ApiOperation,
    /// Values found in the path.
    pub path_values: Map<String, Value>,
}

impl OperationMatch {
    /// `path` is a template, a path with values, or an operation id.
    pub fn find(document: &Document, path: &str, method: &str) -> Result<Self, ToolError> {
        let error = match document.operation(path, method) {
            Ok(operation) => return Ok(Self { operation, path_values: Map::new() }),
            Err(error) if error.kind == Kind::NotFound => error,
            Err(error) => return Err(error),
        };
        if let Some(found) = document.match_filled_path(path, method)? {
            return Ok(Self { operation: found.operation, path_values: found.values });
        }
        if path.contains('/') {
            return Err(error);
        }
        let operation = document.operation_by_id(path)?;
        if !operation.method.eq_ignore_ascii_case(method) {
            let (id, method, path) = (operation.id, operation.method, operation.path);
            return Err(ToolError::invalid(format!("`{id}` is {method} {path}."))
                .hint(format!("Use method {method}.")));
        }
        Ok(Self { operation, path_values: Map::new() })
    }
}
