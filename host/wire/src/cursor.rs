//! A checked reader over shared bytes: the only place where this crate turns bytes into integers and strings.

use bytes::Bytes;

use crate::error::{Result, WireError, WireErrorKind};
use crate::lsn::Lsn;
use crate::timestamp::Timestamp;

/// Reads big-endian fields one after another. Every error is placed at the field that could not be read.
pub(crate) struct Cursor<'a> {
    bytes: &'a Bytes,
    position: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) const fn new(bytes: &'a Bytes) -> Self {
        Self { bytes, position: 0 }
    }

    pub(crate) const fn position(&self) -> usize {
        self.position
    }

    /// An error at the field that comes next.
    pub(crate) const fn error(&self, kind: WireErrorKind) -> WireError {
        WireError::new(self.position, kind)
    }

    /// An error at the field of `width` bytes that was just read.
    pub(crate) const fn error_before(&self, width: usize, kind: WireErrorKind) -> WireError {
        WireError::new(self.position.saturating_sub(width), kind)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let field = self.rest().first_chunk::<N>().copied().ok_or(self.error(WireErrorKind::Truncated))?;
        self.position += N;
        Ok(field)
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn i32(&mut self) -> Result<i32> {
        self.array().map(i32::from_be_bytes)
    }

    pub(crate) fn lsn(&mut self) -> Result<Lsn> {
        self.array().map(u64::from_be_bytes).map(Lsn)
    }

    pub(crate) fn timestamp(&mut self) -> Result<Timestamp> {
        self.array().map(i64::from_be_bytes).map(Timestamp)
    }

    /// A 16-bit count. PostgreSQL writes it as a signed number, so the upper half of the range is no count.
    pub(crate) fn count_i16(&mut self) -> Result<usize> {
        let count = self.array().map(i16::from_be_bytes)?;
        usize::try_from(count).map_err(|_| self.error_before(2, WireErrorKind::BadLength))
    }

    /// A 32-bit count or length that may not be negative.
    pub(crate) fn count_i32(&mut self) -> Result<usize> {
        let count = self.i32()?;
        usize::try_from(count).map_err(|_| self.error_before(4, WireErrorKind::BadLength))
    }

    /// The next `length` bytes, sharing the message's memory.
    pub(crate) fn take(&mut self, length: usize) -> Result<Bytes> {
        let start = self.skip(length)?;
        Ok(self.since(start))
    }

    /// The bytes from `start` up to here, sharing the message's memory.
    pub(crate) fn since(&self, start: usize) -> Bytes {
        self.bytes.slice(start.min(self.position)..self.position)
    }

    /// Steps over `length` bytes and says where they start.
    pub(crate) fn skip(&mut self, length: usize) -> Result<usize> {
        let start = self.position;
        if length > self.remaining() {
            return Err(self.error(WireErrorKind::Truncated));
        }
        self.position += length;
        Ok(start)
    }

    /// Bytes up to the next zero byte, which is stepped over.
    pub(crate) fn terminated(&mut self) -> Result<&'a [u8]> {
        let rest = self.rest();
        let length = memchr::memchr(0, rest).ok_or(self.error(WireErrorKind::NoTerminator))?;
        self.position += length + 1;
        Ok(rest.get(..length).unwrap_or_default())
    }

    /// A zero-terminated name. Names are UTF-8 because sessions pin `client_encoding`; anything else is refused, never mended.
    pub(crate) fn name(&mut self) -> Result<&'a str> {
        let start = self.position;
        let bytes = self.terminated()?;
        std::str::from_utf8(bytes)
            .map_err(|error| WireError::new(start + error.valid_up_to(), WireErrorKind::InvalidUtf8))
    }

    /// All that was not read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.position..).unwrap_or_default()
    }

    /// All that was not read yet, sharing the message's memory. Ends the reading.
    pub(crate) fn into_rest(self) -> Bytes {
        self.bytes.slice(self.position.min(self.bytes.len())..)
    }

    pub(crate) const fn remaining(&self) -> usize {
        self.bytes.len().saturating_sub(self.position)
    }

    /// Ends the reading; bytes left over are an error.
    pub(crate) const fn finish(self) -> Result<()> {
        if self.remaining() == 0 { Ok(()) } else { Err(self.error(WireErrorKind::TrailingBytes)) }
    }
}
