//! The six ways to make a function: of one value, of a row, a filter; each plain or bound with arguments.

use serde::de::DeserializeOwned;

use crate::answer::{PlainFilter, PlainRow, PlainValue};
use crate::batch::{AnswerKeep, AnswerRow, AnswerValue, BoundFilter, BoundKeep, BoundMask, BoundRow, BoundValue};
use crate::bindings::exports::pgveil::policy::policy::FunctionKind;
use crate::function::Open;
use crate::{Context, Function, Guarantees, NoArguments, Out, Outcome, Row, RowFilter, RowMask, ValueMask};

impl Function {
    /// A mask of one value: a plain function, without arguments.
    #[must_use]
    pub fn value(name: &str, mask: fn(&str, &Context, &mut Out) -> Outcome) -> Self {
        let open = move |context: Context, guarantees| {
            parse::<NoArguments>(&context)?;
            bound_value(PlainValue { mask, context: context.clone() }, guarantees, &context)
        };
        Self::new::<NoArguments>(name, FunctionKind::Mask, Open::Mask(Box::new(open)))
    }

    /// A mask of one value that is bound with arguments.
    #[must_use]
    pub fn value_mask<M: ValueMask>(name: &str) -> Self {
        let open = |context: Context, guarantees| {
            let mask = M::bind(parse(&context)?, &context)?;
            bound_value(mask, guarantees, &context)
        };
        Self::new::<M::Arguments>(name, FunctionKind::Mask, Open::Mask(Box::new(open)))
    }

    /// A mask of a row to one column: a plain function, without arguments.
    #[must_use]
    pub fn row(name: &str, mask: fn(&Row<'_>, &Context, &mut Out) -> Outcome) -> Self {
        let open = move |context: Context, guarantees| {
            parse::<NoArguments>(&context)?;
            bound_row(PlainRow { mask, context: context.clone() }, guarantees, context)
        };
        Self::new::<NoArguments>(name, FunctionKind::Mask, Open::Mask(Box::new(open))).inputs(1, None)
    }

    /// A mask of a row that is bound with arguments.
    #[must_use]
    pub fn row_mask<M: RowMask>(name: &str) -> Self {
        let open = |context: Context, guarantees| {
            let mask = M::bind(parse(&context)?, &context)?;
            bound_row(mask, guarantees, context)
        };
        Self::new::<M::Arguments>(name, FunctionKind::Mask, Open::Mask(Box::new(open))).inputs(1, None)
    }

    /// A filter: a plain function, without arguments.
    #[must_use]
    pub fn filter(name: &str, keep: fn(&Row<'_>, &Context) -> Outcome<bool>) -> Self {
        let open = move |context: Context| {
            parse::<NoArguments>(&context)?;
            bound_keep(PlainFilter { keep, context: context.clone() }, context)
        };
        Self::new::<NoArguments>(name, FunctionKind::Filter, Open::Filter(Box::new(open)))
    }

    /// A filter that is bound with arguments.
    #[must_use]
    pub fn row_filter<F: RowFilter>(name: &str) -> Self {
        let open = |context: Context| {
            let filter = F::bind(parse(&context)?, &context)?;
            bound_keep(filter, context)
        };
        Self::new::<F::Arguments>(name, FunctionKind::Filter, Open::Filter(Box::new(open)))
    }
}

fn bound_value(
    mask: impl AnswerValue + 'static,
    guarantees: Guarantees,
    context: &Context,
) -> Result<Box<dyn BoundMask>, String> {
    match (context.inputs(), context.outputs()) {
        ([input], [output]) => {
            Ok(Box::new(BoundValue { mask, guarantees, input: input.clone(), output: output.clone() }))
        }
        _ => Err("a mask of one value takes one column and writes one".to_owned()),
    }
}

fn bound_row(
    mask: impl AnswerRow + 'static,
    guarantees: Guarantees,
    context: Context,
) -> Result<Box<dyn BoundMask>, String> {
    Ok(Box::new(BoundRow::new(mask, guarantees, context)))
}

fn bound_keep(filter: impl AnswerKeep + 'static, context: Context) -> Result<Box<dyn BoundFilter>, String> {
    Ok(Box::new(BoundKeep { filter, context }))
}

/// The arguments of a binding, typed.
fn parse<A: DeserializeOwned>(context: &Context) -> Result<A, String> {
    serde_json::from_str(context.arguments()).map_err(|error| format!("arguments: {error}"))
}
