//! The byte stream to a server: a TCP or Unix socket, with or without TLS around it.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio_rustls::client::TlsStream;

use super::endpoint::{Host, Keepalive, Place};

/// An open socket.
pub(super) enum Transport {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Transport {
    /// Opens the socket; of a name's several addresses, the first that answers.
    pub(super) async fn open(host: &Host, keepalive: Option<Keepalive>) -> io::Result<Transport> {
        match &host.place {
            Place::Socket(directory) => {
                UnixStream::connect(directory.join(format!(".s.PGSQL.{}", host.port))).await.map(Transport::Unix)
            }
            Place::Network { address: Some(address), .. } => {
                open_tcp(SocketAddr::new(*address, host.port), keepalive).await.map(Transport::Tcp)
            }
            Place::Network { name, address: None } => {
                let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
                for address in lookup_host((name.as_str(), host.port)).await? {
                    match open_tcp(address, keepalive).await {
                        Ok(stream) => return Ok(Transport::Tcp(stream)),
                        Err(error) => failure = error,
                    }
                }
                Err(failure)
            }
        }
    }
}

async fn open_tcp(address: SocketAddr, keepalive: Option<Keepalive>) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    // Writes are collected before they are sent: waiting for more would only delay answers and feedback.
    stream.set_nodelay(true)?;
    if let Some(Keepalive { idle, interval, count, user_timeout }) = keepalive {
        let socket = SockRef::from(&stream);
        socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(idle).with_interval(interval).with_retries(count))?;
        #[cfg(target_os = "linux")]
        socket.set_tcp_user_timeout(user_timeout)?;
        #[cfg(not(target_os = "linux"))]
        let _ = user_timeout;
    }
    Ok(stream)
}

impl AsyncRead for Transport {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Transport::Tcp(stream) => Pin::new(stream).poll_read(context, into),
            Transport::Unix(stream) => Pin::new(stream).poll_read(context, into),
            Transport::Tls(stream) => Pin::new(stream).poll_read(context, into),
        }
    }
}

impl AsyncWrite for Transport {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Transport::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Transport::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
            Transport::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Transport::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Transport::Unix(stream) => Pin::new(stream).poll_flush(context),
            Transport::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Transport::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Transport::Unix(stream) => Pin::new(stream).poll_shutdown(context),
            Transport::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
