//! `blank`: the emptiest value of the column's type.

use pgveil_guest::{Accepts, ColumnInfo, Context, Function, Guarantees, NoArguments, Out, Outcome, ValueMask};

struct Blank {
    value: &'static str,
}

impl ValueMask for Blank {
    type Arguments = NoArguments;

    fn bind(_: NoArguments, context: &Context) -> Result<Self, String> {
        let column = context.outputs().first().ok_or("it writes one column")?;
        let value = blank_of(column);
        value.map(|value| Self { value }).ok_or_else(|| {
            format!("the type {} has no blank value known here: use standard/constant", column.type_name)
        })
    }

    fn mask(&self, _: &str, out: &mut Out) -> Outcome {
        out.push_str(self.value);
        Ok(())
    }
}

fn blank_of(column: &ColumnInfo) -> Option<&'static str> {
    Some(match (column.base_type_name.as_str(), column.category) {
        (_, 'S') => "",
        (_, 'A') => "{}",
        ("int2" | "int4" | "int8" | "numeric" | "float4" | "float8" | "money", _) => "0",
        ("bool", _) => "f",
        ("date", _) => "1970-01-01",
        ("timestamp", _) => "1970-01-01 00:00:00",
        ("timestamptz", _) => "1970-01-01 00:00:00+00",
        ("time", _) => "00:00:00",
        ("timetz", _) => "00:00:00+00",
        ("interval", _) => "00:00:00",
        ("uuid", _) => "00000000-0000-0000-0000-000000000000",
        ("json" | "jsonb", _) => "{}",
        ("bytea", _) => "\\x",
        ("inet", _) => "0.0.0.0",
        ("cidr", _) => "0.0.0.0/32",
        ("macaddr", _) => "00:00:00:00:00:00",
        ("macaddr8", _) => "00:00:00:00:00:00:00:00",
        ("hstore", _) => "",
        (_, 'R') => "empty",
        _ => return None,
    })
}

pub(crate) fn function() -> Function {
    Function::value_mask::<Blank>("blank")
        .doc(
            "Replaces every value by the emptiest of the column's type.\n\nAn empty string, 0, false, 1970-01-01, `{}`, and so on; NULL stays \
             NULL. Domains may have checks that refuse it.",
        )
        .accepts(&[Accepts::Any])
        .guarantees(Guarantees::DETERMINISTIC | Guarantees::NULL_PRESERVING)
        .example("{}", ["anything"], [""])
}

#[cfg(test)]
mod tests {
    use pgveil_guest::Harness;

    #[test]
    fn each_type_has_its_own() {
        for (sql_type, blank) in [
            ("varchar(3)", ""),
            ("int8", "0"),
            ("bool", "f"),
            ("date", "1970-01-01"),
            ("timestamptz", "1970-01-01 00:00:00+00"),
            ("jsonb", "{}"),
            ("bytea", "\\x"),
            ("text[]", "{}"),
            ("uuid", "00000000-0000-0000-0000-000000000000"),
        ] {
            let harness = Harness::of(crate::functions(), "blank").column(sql_type);
            harness.verify([Some("x"), None]);
            assert_eq!(harness.one("x").as_deref(), Ok(blank), "{sql_type}");
        }
        assert!(
            Harness::of(crate::functions(), "blank")
                .column("geometry")
                .refusal()
                .is_some_and(|text| text.contains("constant"))
        );
    }
}
