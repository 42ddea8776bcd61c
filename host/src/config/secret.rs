//! Secrets: connection URLs and key material. They come from the environment only, are held in types without `Debug`,
//! `Display` or `Serialize`, and no error repeats them.
//!
//! ```
//! fn shown<T: std::fmt::Debug>() {}
//! shown::<pgveil::config::KeyCheckValue>();
//! ```
//!
//! ```compile_fail,E0277
//! fn shown<T: std::fmt::Debug>() {}
//! shown::<pgveil::config::KeyMaterial>();
//! ```
//!
//! ```compile_fail,E0277
//! fn shown<T: std::fmt::Debug>() {}
//! shown::<pgveil::config::ConnectionUrl>();
//! ```

use std::env::VarError;
use std::fmt;

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use thiserror::Error;

/// The fewest bytes of key material that are accepted: as many as the derived keys have.
pub const KEY_BYTES_MIN: usize = 32;

/// Separates guests' keys from everything else that blake3 may ever derive from the same material. Never to be changed: every
/// keyed output would change with it.
const GUEST_KEY_CONTEXT: &str = "pgveil 2026-11 guest key v1";

/// As [`GUEST_KEY_CONTEXT`], for check values.
const CHECK_VALUE_CONTEXT: &str = "pgveil 2026-11 key check value v1";

/// Bytes of a check value. Eight are enough to notice another key and too few to help find this one.
const CHECK_VALUE_BYTES: usize = 8;

/// Why a secret could not be taken from the environment. Names the variable, never its content.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SecretError {
    /// The variable is not set.
    #[error("the environment variable {0} is not set")]
    Missing(String),
    /// The variable is set to nothing.
    #[error("the environment variable {0} is empty")]
    Empty(String),
    /// The variable is not UTF-8.
    #[error("the environment variable {0} is not valid UTF-8")]
    NotText(String),
    /// Neither hexadecimal digits nor base64.
    #[error(
        "the environment variable {0} holds neither hexadecimal digits nor base64; `openssl rand -hex 32` makes a key"
    )]
    NotEncoded(String),
    /// Fewer bytes than [`KEY_BYTES_MIN`].
    #[error(
        "the key in the environment variable {variable} has {bytes} bytes, {KEY_BYTES_MIN} are needed; `openssl rand -hex 32` makes one"
    )]
    TooShort {
        /// The environment variable.
        variable: String,
        /// How many bytes it decodes to.
        bytes: usize,
    },
}

/// A connection URL, which may hold a password.
#[derive(Clone)]
pub struct ConnectionUrl(String);

impl ConnectionUrl {
    /// Takes it from an environment variable.
    ///
    /// # Errors
    /// When the variable is not set, empty, or not UTF-8. Whether it is a URL is for the connection to say.
    pub fn from_env(variable: &str) -> Result<Self, SecretError> {
        read_variable(variable).map(Self)
    }

    /// The URL itself, for the one place that connects. Never log it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// The material of one key of the policy. Guests never see it, only what [`derive_key`](Self::derive_key) gives.
#[derive(Clone)]
pub struct KeyMaterial(Vec<u8>);

impl KeyMaterial {
    /// Takes it from an environment variable: hexadecimal digits, or base64 (standard or URL-safe, padded or not).
    ///
    /// # Errors
    /// When the variable is not set, empty, not UTF-8, neither hexadecimal nor base64, or shorter than [`KEY_BYTES_MIN`].
    pub fn from_env(variable: &str) -> Result<Self, SecretError> {
        Self::decode(variable, &read_variable(variable)?)
    }

    /// Reads material from a text; `variable` is what an error names.
    ///
    /// # Errors
    /// As [`from_env`](Self::from_env).
    pub fn decode(variable: &str, text: &str) -> Result<Self, SecretError> {
        let text = text.trim();
        // Hexadecimal digits are all base64 characters too: 64 of them must not be read as 48 bytes of base64.
        let decoded =
            if text.bytes().all(|byte| byte.is_ascii_hexdigit()) { from_hex(text) } else { from_base64(text) };
        let bytes = decoded.ok_or_else(|| SecretError::NotEncoded(variable.to_owned()))?;
        if bytes.len() < KEY_BYTES_MIN {
            return Err(SecretError::TooShort { variable: variable.to_owned(), bytes: bytes.len() });
        }
        Ok(Self(bytes))
    }

    /// The key that a guest is given: derived from the material, the key's name in the policy and the binding's domain (empty
    /// when it names none). The same three give the same key in every table, on every machine.
    #[must_use]
    pub fn derive_key(&self, name: &str, domain: &str) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key(GUEST_KEY_CONTEXT);
        // Lengths first, so that no two triples run together to the same bytes.
        for part in [name.as_bytes(), domain.as_bytes(), &self.0] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        *hasher.finalize().as_bytes()
    }

    /// A short value by which another key is noticed. It does not tell the key.
    #[must_use]
    pub fn check_value(&self) -> KeyCheckValue {
        let mut value = [0; CHECK_VALUE_BYTES];
        blake3::Hasher::new_derive_key(CHECK_VALUE_CONTEXT).update(&self.0).finalize_xof().fill(&mut value);
        KeyCheckValue(value)
    }
}

/// Tells whether two runs had the same key material, without telling the material. It may be shown and stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyCheckValue([u8; CHECK_VALUE_BYTES]);

impl fmt::Display for KeyCheckValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

fn read_variable(variable: &str) -> Result<String, SecretError> {
    match std::env::var(variable) {
        Ok(text) if text.trim().is_empty() => Err(SecretError::Empty(variable.to_owned())),
        Ok(text) => Ok(text),
        Err(VarError::NotPresent) => Err(SecretError::Missing(variable.to_owned())),
        Err(VarError::NotUnicode(_)) => Err(SecretError::NotText(variable.to_owned())),
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.chars().filter_map(|digit| digit.to_digit(16)?.try_into().ok()).collect();
    let (pairs, odd) = digits.as_chunks::<2>();
    odd.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let alphabet = if text.contains(['-', '_']) { &URL_SAFE } else { &STANDARD };
    GeneralPurpose::new(alphabet, config).decode(text).ok()
}

#[cfg(test)]
#[path = "secret_tests.rs"]
mod tests;
