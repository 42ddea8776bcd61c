//! Proving who we are: trust, cleartext password, MD5, SCRAM-SHA-256 ("Client Authentication" in the manual).
//!
//! The server is not trusted yet. It cannot make us hash for minutes, send the password over an open line, or skip the
//! half of SCRAM in which it proves that it knows the password too.

use bytes::Bytes;
use pgveil_wire::backend::Authentication;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::frontend;

use super::endpoint::{Secret, Settings};
use super::outgoing::Outgoing;
use crate::error::{Error, Kind, Result};
use crate::limits::SCRAM_ITERATIONS_MAX;

/// Where the exchange stands.
pub(super) struct Authenticator<'a> {
    settings: &'a Settings,
    /// Whether nobody listens: TLS, or this machine only.
    private: bool,
    scram: Scram,
}

enum Scram {
    NotBegun,
    /// Our first message is out.
    Begun(Box<ScramSha256>),
    /// Our proof is out, the server's is due.
    Proved(Box<ScramSha256>),
    Done,
}

impl<'a> Authenticator<'a> {
    pub(super) fn new(settings: &'a Settings, private: bool) -> Authenticator<'a> {
        Authenticator { settings, private, scram: Scram::NotBegun }
    }

    /// Answers one request into `outgoing`. `true` when the server has let us in.
    ///
    /// # Errors
    /// [`Kind::Authentication`] for a method that cannot or may not be used, [`Kind::Protocol`] for a broken exchange.
    pub(super) async fn answer(&mut self, request: Authentication, outgoing: &mut Outgoing) -> Result<bool> {
        match request {
            Authentication::Ok => match self.scram {
                Scram::NotBegun | Scram::Done => return Ok(true),
                Scram::Begun(_) | Scram::Proved(_) => {
                    return Err(self.refused("the server did not prove that it knows the password"));
                }
            },
            Authentication::CleartextPassword if !self.private => {
                return Err(self.refused("the server asks for the password in clear on a connection without TLS"));
            }
            Authentication::CleartextPassword => {
                let password = self.password()?.0.as_bytes();
                outgoing.message(|buffer| frontend::password_message(password, buffer))?;
            }
            Authentication::Md5Password(salt) => {
                let digest = md5_hash(self.settings.user.as_bytes(), self.password()?.0.as_bytes(), salt);
                outgoing.message(|buffer| frontend::password_message(digest.as_bytes(), buffer))?;
            }
            Authentication::Sasl(mechanisms) => {
                if !mechanisms.iter().any(|name| name == SCRAM_SHA_256) {
                    return Err(self.refused("the server offers no SASL mechanism that is known here (SCRAM-SHA-256)"));
                }
                self.begin_scram(outgoing)?;
            }
            Authentication::SaslContinue(challenge) => self.prove(challenge, outgoing).await?,
            Authentication::SaslFinal(proof) => self.check_server(&proof)?,
            Authentication::Gss
            | Authentication::GssContinue(_)
            | Authentication::Sspi
            | Authentication::KerberosV5 => {
                return Err(self.refused("the server asks for Kerberos, GSSAPI or SSPI, which is not supported"));
            }
        }
        Ok(false)
    }

    fn begin_scram(&mut self, outgoing: &mut Outgoing) -> Result<()> {
        if !matches!(self.scram, Scram::NotBegun) {
            return Err(self.broken());
        }
        let scram = ScramSha256::new(self.password()?.0.as_bytes(), ChannelBinding::unsupported());
        outgoing.message(|buffer| frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), buffer))?;
        self.scram = Scram::Begun(Box::new(scram));
        Ok(())
    }

    async fn prove(&mut self, challenge: Bytes, outgoing: &mut Outgoing) -> Result<()> {
        let Scram::Begun(mut scram) = std::mem::replace(&mut self.scram, Scram::NotBegun) else {
            return Err(self.broken());
        };
        let iterations = iterations(&challenge).ok_or_else(|| self.broken())?;
        if iterations > SCRAM_ITERATIONS_MAX {
            let place = format!(
                "{}: {iterations} SCRAM iterations, at most {SCRAM_ITERATIONS_MAX} are done",
                self.settings.side
            );
            return Err(Error::new(Kind::Protocol, place));
        }
        // Tens of milliseconds at the upper end: not on a thread that serves other connections.
        let hashed = tokio::task::spawn_blocking(move || scram.update(&challenge).map(|()| scram));
        let scram = hashed.await.ok().and_then(|scram| scram.ok()).ok_or_else(|| self.broken())?;
        outgoing.message(|buffer| frontend::sasl_response(scram.message(), buffer))?;
        self.scram = Scram::Proved(scram);
        Ok(())
    }

    fn check_server(&mut self, proof: &[u8]) -> Result<()> {
        let Scram::Proved(mut scram) = std::mem::replace(&mut self.scram, Scram::Done) else {
            return Err(self.broken());
        };
        scram.finish(proof).map_err(|_| self.refused("the server could not prove that it knows the password"))
    }

    fn password(&self) -> Result<&'a Secret> {
        self.settings
            .password
            .as_ref()
            .ok_or_else(|| self.refused("the server asks for a password and the URL has none"))
    }

    fn refused(&self, what: &str) -> Error {
        Error::new(Kind::Authentication, format!("{}: {what}", self.settings.side))
    }

    /// The library's own words are left out: they quote the server's.
    fn broken(&self) -> Error {
        Error::new(Kind::Protocol, format!("{}: SCRAM exchange", self.settings.side))
    }
}

/// The iteration count in a SCRAM challenge `r=…,s=…,i=4096` (RFC 5802, section 5.1).
fn iterations(challenge: &[u8]) -> Option<u32> {
    let digits = challenge.split(|&byte| byte == b',').find_map(|field| field.strip_prefix(b"i="))?;
    // A count too large for the type is still a count: the largest.
    let all_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    all_digits.then(|| std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).unwrap_or(u32::MAX))
}
