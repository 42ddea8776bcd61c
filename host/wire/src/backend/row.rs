//! Rows of a query's result.

use bytes::Bytes;

use super::command::Format;
use crate::cursor::Cursor;
use crate::error::{Result, WireErrorKind};

/// RowDescription: the columns of the rows to come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowDescription {
    /// The columns, in the order of each row.
    pub fields: Vec<FieldDescription>,
}

/// A column of a [`RowDescription`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldDescription {
    /// Its name.
    pub name: String,
    /// Object identifier of its type.
    pub type_oid: u32,
    /// How its values are written.
    pub format: Format,
}

impl RowDescription {
    /// Reads the body of a RowDescription message.
    ///
    /// # Errors
    /// Truncated, a negative count, a name that is not UTF-8, an unknown format code.
    pub fn parse(body: &Bytes) -> Result<Self> {
        let mut cursor = Cursor::new(body);
        let fields = cursor.count_i16()?;
        let fields = (0..fields).map(|_| FieldDescription::read(&mut cursor)).collect::<Result<_>>()?;
        cursor.finish()?;
        Ok(Self { fields })
    }
}

impl FieldDescription {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let name = cursor.name()?.to_owned();
        let _table_oid_and_column_number = cursor.skip(4 + 2)?;
        let type_oid = cursor.u32()?;
        let _type_size_and_modifier = cursor.skip(2 + 4)?;
        Ok(Self { name, type_oid, format: Format::read(cursor)? })
    }
}

/// DataRow: one row, checked when it is parsed and read in place. No `Debug`: it holds row data.
#[derive(Clone)]
pub struct DataRow {
    body: Bytes,
}

impl DataRow {
    /// Reads the body of a DataRow message that must have `columns` columns.
    ///
    /// # Errors
    /// Another number of columns, truncated, a length below -1 (which stands for NULL).
    pub fn parse(body: &Bytes, columns: usize) -> Result<Self> {
        let mut cursor = Cursor::new(body);
        let found = cursor.count_i16()?;
        if found != columns {
            return Err(cursor.error_before(2, WireErrorKind::UnexpectedColumnCount { expected: columns, found }));
        }
        for _ in 0..columns {
            value(&mut cursor)?;
        }
        cursor.finish()?;
        Ok(Self { body: body.clone() })
    }

    /// The values in column order, `None` for NULL, each sharing the message's memory.
    pub fn iter(&self) -> impl Iterator<Item = Option<Bytes>> {
        self.values().map(|value| value.map(|value| self.body.slice_ref(value)))
    }

    /// The values in column order, `None` for NULL, borrowed.
    pub fn values(&self) -> impl Iterator<Item = Option<&[u8]>> {
        let mut cursor = Cursor::new(&self.body);
        let columns = cursor.count_i16().unwrap_or_default();
        (0..columns).map_while(move |_| value(&mut cursor).ok())
    }
}

/// One value: its length, -1 for NULL, then its bytes.
fn value<'a>(cursor: &mut Cursor<'a>) -> Result<Option<&'a [u8]>> {
    match cursor.i32()? {
        -1 => Ok(None),
        length => {
            let length = usize::try_from(length).map_err(|_| cursor.error_before(4, WireErrorKind::BadLength))?;
            let value = cursor.rest().get(..length).ok_or(cursor.error(WireErrorKind::Truncated))?;
            cursor.skip(length)?;
            Ok(Some(value))
        }
    }
}
