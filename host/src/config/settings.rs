//! Sections of the job file whose fields all have defaults: one definition gives the struct, the defaults, the ranges, the
//! reader and the JSON Schema, so that they cannot disagree.

use std::time::Duration;

use schemars::{Schema, json_schema};

use super::units::{ByteSize, format_duration, parse_duration};

/// A value that a setting can have.
pub(super) trait Setting: Sized + Clone + PartialOrd {
    /// What is expected, for an error: "a size such as `128MiB`".
    const EXPECTED: &'static str;

    /// Reads it from a scalar as it stands in the file.
    fn read(text: &str) -> Option<Self>;

    /// Shows it in the form that [`Setting::read`] takes.
    fn show(&self) -> String;

    /// Its JSON Schema, without the range.
    fn schema() -> Schema;

    /// Its default for the JSON Schema.
    fn json(&self) -> serde_json::Value {
        self.show().into()
    }
}

impl Setting for ByteSize {
    const EXPECTED: &'static str = "a size such as `512KiB`, `128MiB` or `1GiB`";

    fn read(text: &str) -> Option<Self> {
        Self::parse(text)
    }

    fn show(&self) -> String {
        self.to_string()
    }

    fn schema() -> Schema {
        json_schema!({ "type": ["string", "integer"], "pattern": "^[0-9]+ *(B|KiB|MiB|GiB|TiB)?$" })
    }
}

impl Setting for Duration {
    const EXPECTED: &'static str = "a duration such as `500ms`, `10s` or `5min`";

    fn read(text: &str) -> Option<Self> {
        parse_duration(text)
    }

    fn show(&self) -> String {
        format_duration(*self)
    }

    fn schema() -> Schema {
        json_schema!({ "type": ["string", "integer"], "pattern": "^(0|[0-9]+ *(ms|s|min|h|d))$" })
    }
}

impl Setting for u64 {
    const EXPECTED: &'static str = "a whole number";

    fn read(text: &str) -> Option<Self> {
        text.replace('_', "").parse().ok().filter(|_| !text.starts_with(['_', '+']))
    }

    fn show(&self) -> String {
        self.to_string()
    }

    fn schema() -> Schema {
        json_schema!({ "type": "integer" })
    }

    fn json(&self) -> serde_json::Value {
        (*self).into()
    }
}

impl Setting for f64 {
    const EXPECTED: &'static str = "a number";

    fn read(text: &str) -> Option<Self> {
        text.parse().ok().filter(|number: &Self| number.is_finite())
    }

    fn show(&self) -> String {
        self.to_string()
    }

    fn schema() -> Schema {
        json_schema!({ "type": "number" })
    }

    fn json(&self) -> serde_json::Value {
        (*self).into()
    }
}

impl Setting for bool {
    const EXPECTED: &'static str = "`true` or `false`";

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn show(&self) -> String {
        self.to_string()
    }

    fn schema() -> Schema {
        json_schema!({ "type": "boolean" })
    }

    fn json(&self) -> serde_json::Value {
        (*self).into()
    }
}

/// Adds description, default and range to the schema of one setting.
pub(super) fn describe<S: Setting>(description: &str, default: &S, range: Option<(S, S)>) -> Schema {
    let mut schema = S::schema();
    let mut text = description.trim().to_owned();
    if let Some((least, most)) = range {
        text.push_str(&format!(" From {} to {}.", least.show(), most.show()));
    }
    schema.insert("description".into(), text.into());
    schema.insert("default".into(), default.json());
    schema
}

/// Defines a section: `field: type = default, least => most;`, the documentation of the field being also its description
/// in the JSON Schema.
macro_rules! settings {
    (
        $(#[$outer:meta])*
        pub struct $name:ident;
        $( $(#[doc = $doc:literal])+ $field:ident: $kind:ty = $default:expr $(, $least:expr => $most:expr)?; )+
    ) => {
        $(#[$outer])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $( $(#[doc = $doc])+ #[doc = concat!("\n\nDefault: `", stringify!($default), "`.")] pub $field: $kind, )+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $( $field: $default, )+ }
            }
        }

        impl $name {
            /// Every key of the section.
            pub(super) const KEYS: &'static [&'static str] = &[$( stringify!($field) ),+];

            /// Reads the section. A field that is wrong is reported and keeps its default.
            pub(super) fn read(reader: &mut $crate::config::read::Reader, at: &$crate::config::read::Cursor<'_>) -> Self {
                let Some(fields) = reader.mapping(at, Self::KEYS) else { return Self::default() };
                Self {
                    $( $field: reader.setting(
                        fields.get(stringify!($field)),
                        $default,
                        $crate::config::settings::range!($($least => $most)?),
                    ), )+
                }
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let mut properties = serde_json::Map::new();
                $( properties.insert(
                    stringify!($field).to_owned(),
                    $crate::config::settings::describe::<$kind>(
                        concat!($($doc),+),
                        &$default,
                        $crate::config::settings::range!($($least => $most)?),
                    ).into(),
                ); )+
                schemars::json_schema!({ "type": "object", "properties": properties, "additionalProperties": false })
            }
        }
    };
}

macro_rules! range {
    () => {
        None
    };
    ($least:expr => $most:expr) => {
        Some(($least, $most))
    };
}

pub(super) use {range, settings};
