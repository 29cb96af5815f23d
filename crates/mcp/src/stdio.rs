//! The transport over standard input and output: one JSON-RPC message a line. A line that is not a valid message is
//! answered with an error, and the connection stays open.

use std::io;
use std::time::Instant;

use rmcp::RoleServer;
use rmcp::model::{ErrorData, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader, Empty, Stdin, Stdout};
use tokio::sync::oneshot;

use crate::id_scanner::IdScanner;

/// The longest message, in bytes.
const MAX_LINE: usize = 16 << 20;
/// A byte order mark, which a reader of JSON may pass over (RFC 8259, 8.1).
const BYTE_ORDER_MARK: &[u8] = "\u{FEFF}".as_bytes();

/// Standard input and output, as rmcp takes them.
pub(super) struct Stdio {
    input: BufReader<Stdin>,
    /// The bytes of the current line that were read so far. They outlive the future of a read, which can be dropped before the
    /// line is complete.
    line: Vec<u8>,
    /// What finds the id of the request in a line that is too long, while the rest of it is read.
    long_line: Option<IdScanner>,
    /// The transport for messages to the client. It reads nothing.
    output: AsyncRwTransport<RoleServer, Empty, Stdout>,
    /// Says that the input has ended.
    end: Option<oneshot::Sender<Instant>>,
}

/// The result of reading a line.
enum LineRead {
    Line,
    /// A line that is not kept, with the id of its request.
    TooLong(Option<RequestId>),
    End,
}

/// A line that is not a valid message.
enum InvalidLine {
    /// An unknown notification, which gets no answer.
    Ignored,
    Error(Box<ErrorData>, Option<RequestId>),
}

impl Stdio {
    /// Creates the transport over standard input and output, and a receiver that is notified when the input has ended.
    pub(super) fn new() -> (Self, oneshot::Receiver<Instant>) {
        let (end, ended) = oneshot::channel();
        let transport = Self {
            input: BufReader::new(tokio::io::stdin()),
            line: Vec::new(),
            long_line: None,
            output: AsyncRwTransport::new_server(tokio::io::empty(), tokio::io::stdout()),
            end: Some(end),
        };
        (transport, ended)
    }

    /// Says that the input has ended.
    fn tell_end(&mut self) {
        if self.end.take().is_some_and(|end| end.send(Instant::now()).is_err()) {
            tracing::debug!("the server is ending already");
        }
    }

    /// Reads up to the end of a line. Dropping the future loses no bytes.
    async fn read_line(&mut self) -> io::Result<LineRead> {
        loop {
            let available = self.input.fill_buf().await?;
            if available.is_empty() {
                let cut = self.long_line.take().map(|scanner| LineRead::TooLong(scanner.id()));
                return Ok(cut.unwrap_or(LineRead::End));
            }
            let end = memchr::memchr(b'\n', available);
            let taken = end.map_or(available.len(), |end| end + 1);
            let bytes = available.get(..taken).unwrap_or_default();
            if self.long_line.is_none() && self.line.len() + taken > MAX_LINE {
                let mut scanner = IdScanner::default();
                scanner.read(&std::mem::take(&mut self.line));
                self.long_line = Some(scanner);
            }
            match &mut self.long_line {
                Some(scanner) => scanner.read(bytes),
                None => self.line.extend_from_slice(bytes),
            }
            self.input.consume(taken);
            if end.is_some() {
                let long = self.long_line.take().map(|scanner| LineRead::TooLong(scanner.id()));
                return Ok(long.unwrap_or(LineRead::Line));
            }
        }
    }

    /// Answers an invalid line with an error.
    fn answer(&mut self, error: ErrorData, id: Option<RequestId>) {
        let sending = self.output.send(TxJsonRpcMessage::<RoleServer>::error(error, id));
        // The future of a read can be dropped, and the answer must be written whole.
        tokio::spawn(async move {
            if let Err(error) = sending.await {
                tracing::debug!("an error cannot be sent to the client: {error}");
            }
        });
    }
}

/// Parses a line as a message.
fn parse(line: &[u8]) -> Result<RxJsonRpcMessage<RoleServer>, InvalidLine> {
    if let Some((error, id)) = crate::protocol_errors::removed_method(line, None) {
        return Err(InvalidLine::Error(Box::new(error), id));
    }
    serde_json::from_slice(line).map_err(|_| match serde_json::from_slice::<Value>(line) {
        Err(error) => {
            let (error, id) = crate::protocol_errors::parse_error(line, &error);
            InvalidLine::Error(Box::new(error), id)
        }
        Ok(value) if value.get("method").is_some() && value.get("id").is_none() => InvalidLine::Ignored,
        Ok(value) => {
            let (error, id) = crate::protocol_errors::invalid_message(&value);
            InvalidLine::Error(Box::new(error), id)
        }
    })
}

impl Transport<RoleServer> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.output.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            match self.read_line().await {
                Ok(LineRead::Line) => {}
                Ok(LineRead::TooLong(id)) => {
                    let message =
                        format!("the line has more than {MAX_LINE} bytes. Send less in one message");
                    self.answer(ErrorData::invalid_request(message, None), id);
                    continue;
                }
                Ok(LineRead::End) => {
                    self.tell_end();
                    return None;
                }
                Err(error) => {
                    tracing::error!("standard input cannot be read: {error}");
                    self.tell_end();
                    return None;
                }
            }
            let line = std::mem::take(&mut self.line);
            let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line).trim_ascii();
            if line.is_empty() {
                continue;
            }
            match parse(line) {
                Ok(message) => return Some(message),
                Err(InvalidLine::Ignored) => tracing::debug!("an unknown notification is ignored"),
                Err(InvalidLine::Error(error, id)) => self.answer(*error, id),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.output.close().await
    }
}
