//! A mask within a mask: on the elements of an array, on the strings of a document.

use std::cell::RefCell;

use crate::batch::BoundMask;
use crate::{ColumnInfo, Context, Fault, Function, Out, Outcome};

/// A mask of one value, bound to a part of a value instead of a column.
pub struct Inner {
    mask: Box<dyn BoundMask>,
    out: RefCell<Out>,
}

impl Function {
    /// Opens this mask for parts of the values that `context` is about: with the same key, so that a value masks alike in a
    /// column of its own and inside another.
    ///
    /// # Errors
    /// The function is no mask of one value, or refuses; the text says why.
    pub fn open_inner(&self, arguments: &str, context: &Context, part: ColumnInfo) -> Result<Inner, String> {
        let out = RefCell::new(Out::new(Some(&part), 1, 0));
        let mask = self.open_mask(context.for_part(self.name(), arguments, part, self.uses_key()))?;
        if mask.answer().is_none() {
            return Err(format!("{} masks rows and not single values", self.name()));
        }
        Ok(Inner { mask, out })
    }
}

impl Inner {
    /// Masks a part and hands what it became to `then`; `None` where it became NULL.
    ///
    /// # Errors
    /// What the mask or `then` refuses.
    pub fn mask(&self, part: &str, then: impl FnOnce(Option<&str>) -> Outcome) -> Outcome {
        let mut out = self.out.borrow_mut();
        out.clear();
        self.mask.answer().ok_or(Fault::INTERNAL)?.mask(part, &mut out)?;
        out.within_limit()?;
        then((!out.is_null()).then(|| out.written()))
    }
}
