//! Batch of messages to the server, sent at once.

use super::query_response::{QueryResponse, ReadLimits, read_response};
use bytes::BytesMut;
use octo_grants::sql::Lease;
use octo_toolkit::{CallContext, ToolError};
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;

#[derive(Default)]
pub struct MessageBatch {
    frames: BytesMut,
    expected_responses: usize,
}

impl MessageBatch {
    /// For statements of the hub; those of callers go through `parse`, which takes exactly one.
    pub fn simple_query(&mut self, sql: &str) -> Result<&mut Self, ToolError> {
        frontend::query(sql, &mut self.frames).map_err(ToolError::internal)?;
        self.expected_responses += 1;
        Ok(self)
    }

    pub fn parse(&mut self, sql: &str) -> Result<&mut Self, ToolError> {
        frontend::parse("", sql, [], &mut self.frames).map_err(ToolError::internal)?;
        Ok(self)
    }

    pub fn bind(&mut self, values: &[Option<String>]) -> Result<&mut Self, ToolError> {
        let write = |value: &Option<String>, buf: &mut BytesMut| match value {
            Some(text) => {
                buf.extend_from_slice(text.as_bytes());
                Ok(IsNull::No)
            }
            None => Ok(IsNull::Yes),
        };
        let bound = frontend::bind("", "", [], values, write, [], &mut self.frames);
        bound.map_err(|_| {
            ToolError::invalid("The parameters are too many or too large.")
                .hint("Pass fewer or smaller values.")
        })?;
        Ok(self)
    }

    pub fn describe_statement(&mut self) -> Result<&mut Self, ToolError> {
        frontend::describe(b'S', "", &mut self.frames).map_err(ToolError::internal)?;
        Ok(self)
    }

    pub fn describe(&mut self) -> Result<&mut Self, ToolError> {
        frontend::describe(b'P', "", &mut self.frames).map_err(ToolError::internal)?;
        Ok(self)
    }

    pub fn execute(&mut self) -> Result<&mut Self, ToolError> {
        frontend::execute("", 0, &mut self.frames).map_err(ToolError::internal)?;
        Ok(self)
    }

    pub fn sync(&mut self) -> &mut Self {
        frontend::sync(&mut self.frames);
        self.expected_responses += 1;
        self
    }

    /// Sends all messages and reads until the last response.
    pub async fn send(
        &self,
        lease: &mut Lease,
        bounds: &ReadLimits,
        cx: &CallContext,
    ) -> Result<QueryResponse, ToolError> {
        lease.send(&self.frames, self.expected_responses).await?;
        read_response(lease, bounds, cx).await
    }
}
