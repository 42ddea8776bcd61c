//! TLS as libpq's `sslmode` means it ("SSL Support" in the manual's chapter libpq), by rustls.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ProtocolVersion, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::certificate::{AnyCertificate, ChainOnly, Pinned};
use super::endpoint::{Host, Place, Side};
use super::incoming::lost;
use crate::error::{Error, Kind, Result};

/// The protocol's name in TLS (ALPN), from PostgreSQL 17 on; older servers ignore it.
const PROTOCOL_NAME: &[u8] = b"postgresql";

/// Whether and how well a session is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsState {
    /// Plain text: a Unix socket, or TLS was not asked for or not offered.
    None,
    /// Encrypted, but nobody checked whose certificate it is.
    Encrypted(TlsVersion),
    /// Encrypted, and the certificate was checked as `sslmode` asks.
    Verified(TlsVersion),
}

/// The version of TLS in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersion {
    /// TLS 1.2, the oldest that is spoken.
    V1_2,
    /// TLS 1.3.
    V1_3,
}

/// `sslmode`, from no wish at all to full proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TlsMode {
    Disable,
    Allow,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl TlsMode {
    const ALL: [TlsMode; 6] =
        [TlsMode::Disable, TlsMode::Allow, TlsMode::Prefer, TlsMode::Require, TlsMode::VerifyCa, TlsMode::VerifyFull];

    pub(super) fn name(self) -> &'static str {
        match self {
            TlsMode::Disable => "disable",
            TlsMode::Allow => "allow",
            TlsMode::Prefer => "prefer",
            TlsMode::Require => "require",
            TlsMode::VerifyCa => "verify-ca",
            TlsMode::VerifyFull => "verify-full",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<TlsMode> {
        TlsMode::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// The ways to open a session, in order: the next one is tried where the one before fails for want of TLS, or for
    /// having it.
    pub(super) fn attempts(self) -> &'static [Encryption] {
        match self {
            TlsMode::Disable => &[Encryption::Plain],
            TlsMode::Allow => &[Encryption::Plain, Encryption::Tls],
            TlsMode::Prefer => &[Encryption::Tls, Encryption::Plain],
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => &[Encryption::Tls],
        }
    }
}

/// One way to open a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encryption {
    Plain,
    Tls,
}

/// How TLS starts: after PostgreSQL's own request, or at once (from 17 on).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Negotiation {
    #[default]
    Postgres,
    Direct,
}

/// Whose signature makes a server's certificate good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Roots {
    /// The operating system's list of public authorities.
    System,
    /// A PEM file.
    File(PathBuf),
}

/// All that a URL says about TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TlsSettings {
    pub(super) mode: TlsMode,
    pub(super) roots: Option<Roots>,
    /// Files of the client's certificate chain and key.
    pub(super) client: Option<(PathBuf, PathBuf)>,
    pub(super) negotiation: Negotiation,
    /// Whether the host's name is sent in the clear (SNI), as proxies need.
    pub(super) server_name: bool,
}

impl TlsSettings {
    /// Whether the server's certificate is checked. `require` checks it as `verify-ca` does if there is a root file.
    pub(super) fn verifies(&self) -> bool {
        match self.mode {
            TlsMode::VerifyCa | TlsMode::VerifyFull => true,
            TlsMode::Require => self.roots.is_some(),
            TlsMode::Disable | TlsMode::Allow | TlsMode::Prefer => false,
        }
    }

    /// Reads the files and makes rustls's configuration. Read at every connection: certificates are renewed in place.
    fn client_config(&self) -> Result<ClientConfig> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| fault("protocol versions").because(error))?
            .dangerous()
            .with_custom_certificate_verifier(self.verifier(&provider)?);
        let mut config = match &self.client {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = certificates(certificate, "sslcert")?;
                let key_place = || fault(format!("sslkey {}", key.display()));
                let key = PrivateKeyDer::from_pem_file(key).map_err(|error| key_place().because(error))?;
                builder.with_client_auth_cert(chain, key).map_err(|error| key_place().because(error))?
            }
        };
        config.enable_sni = self.server_name;
        config.alpn_protocols = vec![PROTOCOL_NAME.to_vec()];
        Ok(config)
    }

    /// The rule by which the server's certificate is judged.
    fn verifier(&self, provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>> {
        if !self.verifies() {
            return Ok(Arc::new(AnyCertificate::new(provider)));
        }
        let given = match &self.roots {
            Some(Roots::File(file)) => certificates(file, "sslrootcert")?,
            // Absent with verify-full: public authorities prove a name, and the name is checked.
            Some(Roots::System) | None => system_certificates()?,
        };
        let mut roots = RootCertStore::empty();
        let (usable, _) = roots.add_parsable_certificates(given.iter().cloned());
        if usable == 0 {
            return Err(fault("sslrootcert holds no usable certificate"));
        }
        let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
            .build()
            .map_err(|error| fault("sslrootcert").because(error))?;
        let pinned = Pinned::new(chain, if matches!(self.roots, Some(Roots::File(_))) { given } else { Vec::new() });
        Ok(if self.mode == TlsMode::VerifyFull { Arc::new(pinned) } else { Arc::new(ChainOnly::new(pinned)) })
    }

    /// Puts TLS around a socket on which the server agreed to it.
    pub(super) async fn wrap(&self, side: Side, host: &Host, stream: TcpStream) -> Result<TlsStream<TcpStream>> {
        let Place::Network { name, .. } = &host.place else {
            return Err(fault(format!("{side}: a Unix socket has no TLS")));
        };
        let name = ServerName::try_from(name.clone())
            .map_err(|error| fault(format!("{side}: the host's name")).because(error))?;
        let connector = TlsConnector::from(Arc::new(self.client_config().map_err(|error| error.within(side))?));
        // A handshake that breaks off is the network's fault, one that is refused is the configuration's: `lost` tells.
        let stream = connector.connect(name, stream).await.map_err(|error| lost(side, error))?;
        if self.negotiation == Negotiation::Direct && stream.get_ref().1.alpn_protocol() != Some(PROTOCOL_NAME) {
            let what = "sslnegotiation=direct: the server does not confirm that it is PostgreSQL";
            return Err(fault(format!("{side}: {what}")));
        }
        Ok(stream)
    }

    /// What came of it.
    pub(super) fn state(&self, stream: &TlsStream<TcpStream>) -> TlsState {
        let version = match stream.get_ref().1.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => TlsVersion::V1_3,
            _ => TlsVersion::V1_2,
        };
        if self.verifies() { TlsState::Verified(version) } else { TlsState::Encrypted(version) }
    }
}

fn fault(place: impl Into<String>) -> Error {
    Error::new(Kind::Tls, place)
}

/// All certificates of a PEM file.
fn certificates(file: &Path, parameter: &str) -> Result<Vec<CertificateDer<'static>>> {
    let place = || format!("{parameter} {}", file.display());
    let pem = fs::read(file).map_err(|error| fault(place()).because(error))?;
    let certificates = CertificateDer::pem_slice_iter(&pem)
        .collect::<std::result::Result<Vec<_>, _>>()
        .map_err(|error| fault(place()).because(error))?;
    if certificates.is_empty() {
        return Err(fault(format!("{}: no certificate in the file", place())));
    }
    Ok(certificates)
}

/// The operating system's authorities. Unreadable ones are left out as long as some remain.
fn system_certificates() -> Result<Vec<CertificateDer<'static>>> {
    let mut found = rustls_native_certs::load_native_certs();
    match found.errors.pop() {
        Some(error) if found.certs.is_empty() => Err(fault("sslrootcert=system").because(error)),
        _ => Ok(found.certs),
    }
}
