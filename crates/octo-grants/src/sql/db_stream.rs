//! Connection to a database, plain or with TLS.

use super::db_tls;
use super::dsn::{DbHost, Login, Tls};
use crate::Net;
use bytes::BytesMut;
use postgres_protocol::message::frontend;
use rustix::net::RecvFlags;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::client::TlsStream;

pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Connects to the first host that responds.
    pub async fn open(login: &Login) -> io::Result<Self> {
        let mut fail = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for (place, port) in &login.hosts {
            match Self::connect(&login.net, place, *port, &login.tls).await {
                Ok(stream) => return Ok(stream),
                Err(error) => fail = error,
            }
        }
        Err(fail)
    }

    pub(super) async fn connect(net: &Net, place: &DbHost, port: u16, mode: &Tls) -> io::Result<Self> {
        let host = match place {
            DbHost::UnixSocket(folder) => {
                return UnixStream::connect(folder.join(format!(".s.PGSQL.{port}"))).await.map(Self::Unix);
            }
            DbHost::Tcp(host) => host,
        };
        let bracketed = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        // The operator configured this host, so it may be private; any other that its name resolves to may not.
        let named =
            net.for_configured_host(&format!("http://{bracketed}:{port}")).map_err(io::Error::other)?;
        let mut stream = named.connect(host, port).await.map_err(io::Error::other)?;
        if *mode == Tls::Off {
            return Ok(Self::Tcp(stream));
        }
        if !offers_tls(&mut stream).await? {
            return match mode {
                Tls::Verified(_) => {
                    Err(io::Error::other("the server does not offer TLS, which sslmode requires"))
                }
                _ => Ok(Self::Tcp(stream)),
            };
        }
        db_tls::secure(stream, host, mode).await.map(|stream| Self::Tls(Box::new(stream)))
    }

    /// Whether the connection is open and silent. An idle session receives nothing: pending data is the server's
    /// termination message.
    pub fn is_idle(&self) -> bool {
        let mut byte = [0u8; 1];
        let peeked = rustix::net::recv(self.fd(), &mut byte[..], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        matches!(peeked, Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR))
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
            Self::Tls(stream) => stream.get_ref().0.as_fd(),
        }
    }
}

async fn offers_tls(stream: &mut TcpStream) -> io::Result<bool> {
    let mut ask = BytesMut::new();
    frontend::ssl_request(&mut ask);
    stream.write_all(&ask).await?;
    // Exactly one byte: the rest must come through TLS.
    Ok(stream.read_u8().await? == b'S')
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
