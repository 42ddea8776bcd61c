//! Authentication requests: one tag, told apart by a code.

use bytes::Bytes;

use crate::cursor::Cursor;
use crate::error::{Result, WireErrorKind};

/// What the server wants before it lets the session in. No `Debug`: salts and SASL data stay out of logs.
pub enum Authentication {
    /// Code 0: the session is let in.
    Ok,
    /// Code 2: Kerberos 5.
    KerberosV5,
    /// Code 3: the password as it is.
    CleartextPassword,
    /// Code 5: the password's MD5 digest with this salt.
    Md5Password([u8; 4]),
    /// Code 7: GSSAPI.
    Gss,
    /// Code 8: next data of GSSAPI or SSPI.
    GssContinue(Bytes),
    /// Code 9: SSPI.
    Sspi,
    /// Code 10: SASL, by one of these mechanisms.
    Sasl(SaslMechanisms),
    /// Code 11: a SASL challenge.
    SaslContinue(Bytes),
    /// Code 12: the end of a SASL exchange; the client checks the server's proof in it.
    SaslFinal(Bytes),
}

/// Mechanisms that the server offers, in its order of preference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaslMechanisms(Vec<String>);

impl SaslMechanisms {
    /// The names, such as `SCRAM-SHA-256`.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl Authentication {
    /// Reads the body of an Authentication message.
    ///
    /// # Errors
    /// A code that the manual does not list, a body shorter or longer than its code says.
    pub fn parse(body: &Bytes) -> Result<Self> {
        let mut cursor = Cursor::new(body);
        let request = match cursor.i32()? {
            0 => Self::Ok,
            2 => Self::KerberosV5,
            3 => Self::CleartextPassword,
            5 => Self::Md5Password(cursor.u32()?.to_be_bytes()),
            7 => Self::Gss,
            8 => return Ok(Self::GssContinue(cursor.into_rest())),
            9 => Self::Sspi,
            10 => Self::Sasl(mechanisms(&mut cursor)?),
            11 => return Ok(Self::SaslContinue(cursor.into_rest())),
            12 => return Ok(Self::SaslFinal(cursor.into_rest())),
            code => return Err(cursor.error_before(4, WireErrorKind::UnknownCode(code))),
        };
        cursor.finish()?;
        Ok(request)
    }
}

/// Names up to an empty one.
fn mechanisms(cursor: &mut Cursor<'_>) -> Result<SaslMechanisms> {
    let mut names = Vec::new();
    loop {
        match cursor.name()? {
            "" => return Ok(SaslMechanisms(names)),
            name => names.push(name.to_owned()),
        }
    }
}
