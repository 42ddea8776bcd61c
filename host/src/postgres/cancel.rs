//! Cancelling a running command, which takes a connection of its own ("Canceling Requests in Progress" in the manual).

use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::endpoint::{Endpoint, Host};
use super::incoming::lost;

use super::startup::open;
use super::tls::{Encryption, TlsState};
use crate::error::{Error, Kind, Result};

/// Cancels what a session is doing at that moment. Cheap to clone. No `Debug`: whoever knows the key can cancel.
#[derive(Clone)]
pub struct Cancel {
    endpoint: Endpoint,
    host: Host,
    encryption: Encryption,
    process_id: i32,
    secret_key: Bytes,
}

impl Cancel {
    pub(super) fn new(endpoint: &Endpoint, host: &Host, tls: TlsState, process_id: i32, secret_key: Bytes) -> Cancel {
        let encryption = if tls == TlsState::None { Encryption::Plain } else { Encryption::Tls };
        Cancel { endpoint: endpoint.clone(), host: host.clone(), encryption, process_id, secret_key }
    }

    /// Asks the server to cancel, over a connection that is as private as the session's, and waits until it was heard.
    ///
    /// The command then fails with SQLSTATE 57014, unless it ends first: the server does not say which.
    ///
    /// # Errors
    /// [`Kind::ConnectionLost`], [`Kind::Tls`].
    pub async fn send(&self) -> Result<()> {
        let settings = self.endpoint.settings();
        let exchange = async {
            let (mut transport, _) = open(settings, &self.host, self.encryption).await?;
            let request = self.request();
            transport.write_all(&request).await.map_err(|error| lost(settings.side, error))?;
            transport.flush().await.map_err(|error| lost(settings.side, error))?;
            // The server closes the connection when it has passed the signal on. A reset says the same.
            let _ = transport.read_u8().await;
            Ok(())
        };
        timeout(settings.connect_timeout, exchange).await.unwrap_or_else(|_| {
            Err(Error::new(Kind::ConnectionLost, format!("{}: the request to cancel was not heard", settings.side)))
        })
    }

    /// CancelRequest. postgres-protocol writes four-byte keys only.
    fn request(&self) -> BytesMut {
        const CANCEL_REQUEST_CODE: i32 = 80_877_102;
        let length = 12 + self.secret_key.len();
        let mut request = BytesMut::with_capacity(length);
        // A key has at most 256 bytes.
        request.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
        request.put_i32(CANCEL_REQUEST_CODE);
        request.put_i32(self.process_id);
        request.put_slice(&self.secret_key);
        request
    }
}
