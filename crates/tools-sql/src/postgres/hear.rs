//! Listening to the server, within bounds.

use fallible_iterator::FallibleIterator;
use octo_grants::sql::{Lease, ServerError, TransactionState};
use octo_toolkit::{CallContext, Kind, ToolError};
use postgres_protocol::message::backend::{DataRowBody, Message, RowDescriptionBody};
use std::time::Duration;

/// What the server has beyond its own timeout before the hub stops waiting for it.
const GRACE: Duration = Duration::from_secs(2);
/// For questions of ours.
const OURS: Duration = Duration::from_secs(30);
/// Remarks of the server that are passed on.
const NOTICES: usize = 20;

pub struct Bounds {
    /// Rows to keep; more are counted and thrown away.
    pub rows: usize,
    /// Bytes after which the server is told to stop.
    pub bytes: usize,
    /// The server's own timeout.
    pub timeout: Duration,
}

impl Bounds {
    pub fn of_ours() -> Self {
        Self { rows: usize::MAX, bytes: usize::MAX, timeout: OURS }
    }
}

pub struct Column {
    pub name: String,
    pub oid: u32,
}

#[derive(Default)]
pub struct Heard {
    pub columns: Vec<Column>,
    pub rows: Vec<DataRowBody>,
    /// Rows that came, kept or not.
    pub seen: usize,
    pub tags: Vec<String>,
    pub fault: Option<ServerError>,
    /// Where the transaction stood after each exchange.
    pub standings: Vec<TransactionState>,
    pub notices: Vec<String>,
    pub parameters: Vec<u32>,
    /// Too many bytes came, and the statement was stopped.
    pub cut: bool,
    bytes: usize,
}

/// Why listening ended before the last answer.
enum End {
    Done,
    TooMuch,
    Copy,
}

pub async fn hear(lease: &mut Lease, bounds: &Bounds, cx: &CallContext) -> Result<Heard, ToolError> {
    let mut heard = Heard::default();
    let listen = heard.listen(lease, bounds);
    let ended = tokio::select! {
        ended = listen => ended?,
        () = cx.cancel.cancelled() => {
            lease.stop().await;
            return Err(ToolError::new(Kind::Cancelled, "The statement was cancelled."));
        }
        () = tokio::time::sleep(bounds.timeout + GRACE) => {
            lease.stop().await;
            return Err(late(bounds.timeout));
        }
    };
    match ended {
        End::Done => {}
        End::TooMuch => {
            heard.cut = true;
            lease.stop().await;
        }
        End::Copy => {
            return Err(ToolError::invalid("COPY from or to the client is not possible here.")
                .hint("Insert rows with db_execute, or read them with db_query."));
        }
    }
    Ok(heard)
}

pub fn late(limit: Duration) -> ToolError {
    ToolError::new(Kind::Timeout, format!("The statement was stopped after {} seconds.", limit.as_secs_f32()))
        .hint("Ask for less, look at the plan with db_explain, or give a longer timeout_s.")
}

impl Heard {
    async fn listen(&mut self, lease: &mut Lease, bounds: &Bounds) -> Result<End, ToolError> {
        while !lease.is_done() {
            match lease.next().await? {
                Message::DataRow(row) => {
                    self.seen += 1;
                    self.bytes += row.buffer().len();
                    if self.bytes > bounds.bytes {
                        return Ok(End::TooMuch);
                    }
                    if self.rows.len() < bounds.rows {
                        self.rows.push(row);
                    }
                }
                Message::RowDescription(body) => self.columns = columns(&body)?,
                Message::CommandComplete(body) => {
                    self.tags.push(body.tag().map_err(ToolError::internal)?.to_owned());
                }
                Message::ReadyForQuery(_) => self.standings.push(lease.transaction_state()),
                Message::ErrorResponse(body) => {
                    self.fault.get_or_insert_with(|| ServerError::parse(body.fields()));
                }
                Message::NoticeResponse(body) => self.notice(&ServerError::parse(body.fields())),
                Message::ParameterDescription(body) => {
                    self.parameters = body.parameters().collect().map_err(ToolError::internal)?;
                }
                Message::CopyInResponse(_) | Message::CopyOutResponse(_) => return Ok(End::Copy),
                _ => {}
            }
        }
        Ok(End::Done)
    }

    fn notice(&mut self, said: &ServerError) {
        // The server's remark on the hub's own ROLLBACK is not the caller's.
        if self.notices.len() < NOTICES && said.code != "25P01" {
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
