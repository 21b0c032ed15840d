//! Minimal HTTP client, so that the server dominates the measurement.

use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// A persistent connection.
pub struct RawHttpClient {
    from: BufReader<TcpStream>,
    server: SocketAddr,
}

impl RawHttpClient {
    pub fn connect(port: u16) -> Result<Self> {
        let server = (Ipv4Addr::LOCALHOST, port).into();
        Self::with_stream(TcpStream::connect(server)?, server)
    }

    /// To any address. Each read or write may take as long as `io_timeout`.
    pub fn connect_to(server: SocketAddr, connect_timeout: Duration, io_timeout: Duration) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&server, connect_timeout)?;
        stream.set_read_timeout(Some(io_timeout))?;
        stream.set_write_timeout(Some(io_timeout))?;
        Self::with_stream(stream, server)
    }

    fn with_stream(stream: TcpStream, server: SocketAddr) -> Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { from: BufReader::with_capacity(1 << 16, stream), server })
    }

    /// Whether the server has not closed the connection.
    pub fn is_open(&self) -> bool {
        let stream = self.from.get_ref();
        let is_quiet = stream.set_nonblocking(true).is_ok()
            && stream.peek(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        stream.set_nonblocking(false).is_ok() && is_quiet
    }

    /// Body of the response, and the time until its last byte.
    pub fn send(&mut self, method: &str, path: &str, body: &str) -> Result<(Vec<u8>, Duration)> {
        self.send_with(method, path, "", body)
    }

    /// The same with additional headers, each with its line end.
    pub fn send_with(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> Result<(Vec<u8>, Duration)> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            self.server,
            body.len()
        );
        let began = Instant::now();
        self.from.get_mut().write_all(request.as_bytes())?;
        let mut length = None;
        loop {
            let mut line = String::new();
            ensure!(self.from.read_line(&mut line)? > 0, "the connection was closed");
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = Some(value.trim().parse()?);
            }
        }
        let mut body = vec![0; length.context("the response has no Content-Length")?];
        self.from.read_exact(&mut body)?;
        Ok((body, began.elapsed()))
    }
}
