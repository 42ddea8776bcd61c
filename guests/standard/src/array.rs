//! `array`: any mask of one value, over the elements of an array.

use pgveil_guest::value::{Array, read};
use pgveil_guest::{Accepts, Context, Fault, Function, Guarantees, Inner, KeyUse, Out, Outcome, ValueMask};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::inner::InnerMask;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The mask for the elements.
    elements: InnerMask,
}

struct Elements {
    inner: Inner,
}

impl ValueMask for Elements {
    type Arguments = Arguments;

    fn bind(arguments: Arguments, context: &Context) -> Result<Self, String> {
        let column = context.inputs().first().ok_or("it reads one column")?;
        let element = column.as_element().ok_or_else(|| format!("column {:?} is no array", column.name))?;
        Ok(Self { inner: arguments.elements.open(context, element)? })
    }

    fn mask(&self, value: &str, out: &mut Out) -> Outcome {
        read::<Array<'_>>(value)?.write_masked(out, |element, masked| {
            self.inner.mask(element, |text| {
                masked.push_str(text.ok_or(Fault::UNSUPPORTED_VALUE)?);
                Ok(())
            })
        })
    }
}

pub(crate) fn function() -> Function {
    Function::value_mask::<Elements>("array")
        .doc(
            "Masks the elements of an array by another mask.\n\nBounds, dimensions and NULL elements stay. Under the same key an element masks as \
             it would in a column of its own.",
        )
        .accepts(&[Accepts::Category('A')])
        .key(KeyUse::Optional)
        .guarantees(Guarantees::DETERMINISTIC | Guarantees::NULL_PRESERVING)
        .example(r#"{"elements": {"mask": "partial"}}"#, [r#"{"one three",NULL,""}"#], [r#"{*****hree,NULL,""}"#])
}

#[cfg(test)]
mod tests {
    use pgveil_guest::Harness;
    use pgveil_guest::serde_json::{Value, json};

    fn array(sql_type: &str, elements: impl Into<Value>) -> Harness {
        Harness::of(crate::functions(), "array").column(sql_type).arguments(json!({ "elements": elements.into() }))
    }

    #[test]
    fn shape_and_nulls_stay_and_elements_mask_as_columns_do() {
        let emails = array("text[]", json!({"mask": "email", "arguments": {"domain": "keep"}}));
        let alone = Harness::of(crate::functions(), "email").arguments(json!({"domain": "keep"}));
        let (Ok(inside), Ok(alone)) = (emails.one("[2:3]={a@b.cd,NULL}"), alone.one("a@b.cd")) else {
            panic!("refused")
        };
        assert_eq!(inside, format!("[2:3]={{{alone},NULL}}"));
        array("int4[]", json!({"mask": "integer"})).verify([Some("{1,2}"), Some("{{1,NULL},{3,4}}"), Some("{}"), None]);
    }

    #[test]
    fn results_are_quoted_where_they_must_be() {
        let constant = array("text[]", json!({"mask": "constant", "arguments": {"value": "a \"b\", {c}"}}));
        assert_eq!(constant.one("{x}").as_deref(), Ok(r#"{"a \"b\", {c}"}"#));
    }

    #[test]
    fn what_cannot_be_applied_is_refused() {
        let refusal = |sql_type, inner: Value| array(sql_type, inner).refusal().unwrap_or_default();
        assert!(refusal("text[]", json!({"mask": "nobody"})).contains("no mask"));
        assert!(refusal("text[]", json!({"mask": "date-shift"})).contains("date-shift"));
        assert!(refusal("int4[]", json!({"mask": "email"})).contains("does not accept"));
        assert!(refusal("text", json!({"mask": "email"})).contains("does not accept"));
        assert!(refusal("text[]", json!({"mask": "hash", "arguments": {"size": 1}})).contains("unknown field"));
    }
}
