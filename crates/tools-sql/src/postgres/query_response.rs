//! Reads the server's responses, within limits.

use fallible_iterator::FallibleIterator;
use octo_grants::sql::{Lease, ServerError, TransactionState};
use octo_toolkit::{CallContext, Kind, ToolError};
use postgres_protocol::message::backend::{DataRowBody, Message, RowDescriptionBody};
use std::time::Duration;

/// Time beyond the server's own timeout before the hub stops waiting.
const TIMEOUT_GRACE: Duration = Duration::from_secs(2);
/// Timeout of the hub's own queries.
const CATALOG_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum notices of the server that are passed on.
const MAX_NOTICES: usize = 20;

pub struct ReadLimits {
    /// Maximum rows to keep; more are counted and discarded.
    pub max_rows: usize,
    /// Bytes after which the statement is cancelled.
    pub max_bytes: usize,
    /// The server's own timeout.
    pub timeout: Duration,
}

impl ReadLimits {
    pub fn for_catalog() -> Self {
        Self { max_rows: usize::MAX, max_bytes: usize::MAX, timeout: CATALOG_TIMEOUT }
    }
}

pub struct Column {
    pub name: String,
    pub oid: u32,
}

#[derive(Default)]
pub struct QueryResponse {
    pub columns: Vec<Column>,
    pub rows: Vec<DataRowBody>,
    /// Received rows, kept or not.
    pub row_count: usize,
    pub command_tags: Vec<String>,
    pub error: Option<ServerError>,
    /// Transaction state after each exchange.
    pub transaction_states: Vec<TransactionState>,
    pub notices: Vec<String>,
    pub parameters: Vec<u32>,
    /// The limit of bytes was exceeded, and the statement was cancelled.
    pub truncated: bool,
    bytes: usize,
}

/// Why reading ended.
enum ReadEnd {
    Done,
    TooLarge,
    Copy,
}

pub async fn read_response(
    lease: &mut Lease,
    bounds: &ReadLimits,
    cx: &CallContext,
) -> Result<QueryResponse, ToolError> {
    let mut heard = QueryResponse::default();
    let listen = heard.read_messages(lease, bounds);
    let ended = tokio::select! {
        ended = listen => ended?,
        () = cx.cancel.cancelled() => {
            lease.stop().await;
            return Err(ToolError::new(Kind::Cancelled, "The statement was cancelled."));
        }
        () = tokio::time::sleep(bounds.timeout + TIMEOUT_GRACE) => {
            lease.stop().await;
            return Err(timeout_error(bounds.timeout));
        }
    };
    match ended {
        ReadEnd::Done => {}
        ReadEnd::TooLarge => {
            heard.truncated = true;
            lease.stop().await;
        }
        ReadEnd::Copy => {
            return Err(ToolError::invalid("COPY from or to the client is not supported.")
                .hint("Insert rows with db_execute, or read them with db_query."));
        }
    }
    Ok(heard)
}

pub fn timeout_error(limit: Duration) -> ToolError {
    ToolError::new(Kind::Timeout, format!("The statement was stopped after {} seconds.", limit.as_secs_f32()))
        .hint("Request less data, check the plan with db_explain, or set a longer timeout_s.")
}

impl QueryResponse {
    async fn read_messages(&mut self, lease: &mut Lease, bounds: &ReadLimits) -> Result<ReadEnd, ToolError> {
        while !lease.is_done() {
            match lease.next().await? {
                Message::DataRow(row) => {
                    self.row_count += 1;
                    self.bytes += row.buffer().len();
                    if self.bytes > bounds.max_bytes {
                        return Ok(ReadEnd::TooLarge);
                    }
                    if self.rows.len() < bounds.max_rows {
                        self.rows.push(row);
                    }
                }
                Message::RowDescription(body) => self.columns = columns(&body)?,
                Message::CommandComplete(body) => {
                    self.command_tags.push(body.tag().map_err(ToolError::internal)?.to_owned());
                }
                Message::ReadyForQuery(_) => self.transaction_states.push(lease.transaction_state()),
                Message::ErrorResponse(body) => {
                    self.error.get_or_insert_with(|| ServerError::parse(body.fields()));
                }
                Message::NoticeResponse(body) => self.notice(&ServerError::parse(body.fields())),
                Message::ParameterDescription(body) => {
                    self.parameters = body.parameters().collect().map_err(ToolError::internal)?;
                }
                Message::CopyInResponse(_) | Message::CopyOutResponse(_) => return Ok(ReadEnd::Copy),
                _ => {}
            }
        }
        Ok(ReadEnd::Done)
    }

    fn notice(&mut self, said: &ServerError) {
        // Omits the server's notice about the hub's own ROLLBACK.
        if self.notices.len() < MAX_NOTICES && said.code != "25P01" {
            self.notices.push(format!("{}: {}", said.severity, said.message));
        }
    }
}

fn columns(body: &RowDescriptionBody) -> Result<Vec<Column>, ToolError> {
    let one = |field: postgres_protocol::message::backend::Field<'_>| {
        Ok(Column { name: field.name().to_owned(), oid: field.type_oid() })
    };
    body.fields().map(one).collect().map_err(ToolError::internal)
}
