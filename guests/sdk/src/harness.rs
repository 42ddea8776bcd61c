//! Tests without WebAssembly: a function bound and called as pgveil does it, batch by batch.

use crate::batch::BoundMask;
use crate::bindings::pgveil::policy::types::{Batch, Binding, Column};
use crate::export::find;
use crate::out::{NULL, UNCHANGED, VALUE};
use crate::{ColumnInfo, Context, Fault, Function, Guarantees, KeyUse, TableInfo};

/// The key of examples and tests: 00 01 02 … 1f.
const EXAMPLE_KEY: [u8; 32] = {
    let mut key = [0; 32];
    let mut position = 0;
    while position < key.len() {
        key[position] = position as u8;
        position += 1;
    }
    key
};

/// A row of a test: one value per column, `None` for NULL.
pub type TestRow = Vec<Option<String>>;

/// A function under test.
///
/// ```
/// use pgveil_guest::{Context, Function, Harness, Out, Outcome};
///
/// fn reverse(value: &str, _: &Context, out: &mut Out) -> Outcome {
///     value.chars().rev().for_each(|character| out.push(character));
///     Ok(())
/// }
///
/// let harness = Harness::of(vec![Function::value("reverse", reverse)], "reverse");
/// assert_eq!(harness.run([Some("abc"), None]), Ok(vec![Some("cba".to_owned()), None]));
/// harness.verify(["", "a", "日本"]);
/// ```
pub struct Harness {
    function: Function,
    inputs: Vec<ColumnInfo>,
    outputs: Vec<ColumnInfo>,
    key: Option<[u8; 32]>,
    arguments: String,
}

impl Harness {
    /// The function of that name, bound to one column `value` of type `text`, without arguments, and with the example key where
    /// the function uses one.
    ///
    /// # Panics
    /// There is no such function.
    #[must_use]
    #[track_caller]
    pub fn of(functions: Vec<Function>, name: &str) -> Self {
        let function = find(functions, name).unwrap_or_else(|error| panic!("{error}"));
        let key = (function.info().key != KeyUse::None).then_some(EXAMPLE_KEY);
        let outputs = function.info().outputs.at_least as usize;
        let column = describe_column("value", "text");
        Self { function, inputs: vec![column.clone()], outputs: vec![column; outputs], key, arguments: "{}".to_owned() }
    }

    /// Another key.
    #[must_use]
    pub fn key(mut self, key: [u8; 32]) -> Self {
        self.key = Some(key);
        self
    }

    /// No key.
    #[must_use]
    pub fn without_key(mut self) -> Self {
        self.key = None;
        self
    }

    /// Arguments, as JSON: `serde_json::json!({"length": 8})`, or text.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "a call reads better without a borrow of `json!`")]
    pub fn arguments(mut self, arguments: impl ToString) -> Self {
        self.arguments = arguments.to_string();
        self
    }

    /// The type of the one column, as SQL writes it: `varchar(20)`, `timestamptz`, `text[]`.
    #[must_use]
    pub fn column(mut self, sql_type: &str) -> Self {
        let column = describe_column("value", sql_type);
        self.outputs.fill(column.clone());
        self.inputs = vec![column];
        self
    }

    /// The columns granted, as names and types.
    #[must_use]
    pub fn inputs<const N: usize>(mut self, columns: [(&str, &str); N]) -> Self {
        self.inputs = columns.iter().map(|(name, sql_type)| describe_column(name, sql_type)).collect();
        self
    }

    /// The columns written, as names and types.
    #[must_use]
    pub fn outputs<const N: usize>(mut self, columns: [(&str, &str); N]) -> Self {
        self.outputs = columns.iter().map(|(name, sql_type)| describe_column(name, sql_type)).collect();
        self
    }

    /// Why the function refuses this binding; `None` where it accepts it.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        let context = self.context();
        let is_mask = self.function.info().outputs.at_most != Some(0);
        if is_mask { self.function.open_mask(context).err() } else { self.function.open_filter(context).err() }
    }

    /// What the bound mask guarantees.
    ///
    /// # Panics
    /// The function refuses the binding.
    #[must_use]
    #[track_caller]
    pub fn guarantees(&self) -> Guarantees {
        self.mask().guarantees()
    }

    /// Masks values of one column.
    ///
    /// # Errors
    /// The function's refusal.
    ///
    /// # Panics
    /// The function refuses the binding.
    #[track_caller]
    pub fn run<'a, V: Into<Option<&'a str>>>(
        &self,
        values: impl IntoIterator<Item = V>,
    ) -> Result<Vec<Option<String>>, Fault> {
        let rows = values.into_iter().map(|value| vec![value.into().map(str::to_owned)]).collect::<Vec<_>>();
        Ok(self.run_rows(&rows)?.into_iter().filter_map(|row| row.into_iter().next()).collect())
    }

    /// Masks one value that is not NULL.
    ///
    /// # Errors
    /// The function's refusal.
    ///
    /// # Panics
    /// The function refuses the binding, or makes the value NULL.
    #[track_caller]
    pub fn one(&self, value: &str) -> Result<String, Fault> {
        let masked = self.run([value])?.pop().flatten();
        masked.map_or_else(|| panic!("the value became NULL"), Ok)
    }

    /// Masks rows.
    ///
    /// # Errors
    /// The function's refusal.
    ///
    /// # Panics
    /// The function refuses the binding.
    #[track_caller]
    pub fn run_rows(&self, rows: &[TestRow]) -> Result<Vec<TestRow>, Fault> {
        apply(self.mask().as_ref(), &self.batch(rows), rows.len())
    }

    /// Filters rows: whether each stays.
    ///
    /// # Errors
    /// The function's refusal.
    ///
    /// # Panics
    /// The function refuses the binding.
    #[track_caller]
    pub fn keep_rows(&self, rows: &[TestRow]) -> Result<Vec<bool>, Fault> {
        let filter = self.function.open_filter(self.context()).unwrap_or_else(|error| panic!("{error}"));
        Ok(filter.keep(&self.batch(rows))?.into_iter().map(|byte| byte == 1).collect())
    }

    /// Proves on these values what the mask guarantees: see [`verify_rows`](Self::verify_rows).
    ///
    /// # Panics
    /// A promise is broken, or the function refuses the binding or a value.
    #[track_caller]
    pub fn verify<'a, V: Into<Option<&'a str>>>(&self, values: impl IntoIterator<Item = V>) {
        let rows = values.into_iter().map(|value| vec![value.into().map(str::to_owned)]).collect::<Vec<_>>();
        self.verify_rows(&rows);
    }

    /// Proves on these rows what the mask guarantees: the same output in batches of 1, of 7 and of all, in any order and in an instance that was
    /// used before; NULL for NULL; different outputs for different inputs; unchanged values let through where there is one column.
    ///
    /// # Panics
    /// As for [`verify`](Self::verify).
    #[track_caller]
    pub fn verify_rows(&self, rows: &[TestRow]) {
        let mask = self.mask();
        let run = |rows: &[TestRow]| {
            apply(mask.as_ref(), &self.batch(rows), rows.len())
                .unwrap_or_else(|fault| panic!("{}: {fault:?}", self.function.name()))
        };
        let whole = run(rows);
        for size in [1, 7] {
            let pieces: Vec<_> = rows.chunks(size).flat_map(run).collect();
            assert!(pieces == whole, "{}: batches of {size} mask otherwise", self.function.name());
        }
        let reversed: Vec<_> = run(&rows.iter().rev().cloned().collect::<Vec<_>>()).into_iter().rev().collect();
        assert!(reversed == whole, "{}: the order of rows changes the output", self.function.name());
        self.verify_guarantees(mask.guarantees(), rows, &whole);
        self.verify_unchanged(mask.as_ref());
    }

    fn verify_guarantees(&self, guarantees: Guarantees, rows: &[TestRow], masked: &[TestRow]) {
        let name = self.function.name();
        if guarantees.contains(Guarantees::NULL_PRESERVING) && self.inputs.len() == 1 {
            for (row, masked) in rows.iter().zip(masked) {
                assert_eq!(row[0].is_none(), masked[0].is_none(), "{name}: NULL is not preserved");
            }
        }
        if guarantees.contains(Guarantees::INJECTIVE) {
            let mut seen = std::collections::HashMap::new();
            for (row, masked) in rows.iter().zip(masked) {
                let first = seen.entry(masked).or_insert(row);
                assert_eq!(*first, row, "{name}: two inputs have one output");
            }
        }
    }

    fn verify_unchanged(&self, mask: &dyn BoundMask) {
        if self.inputs.len() == 1 && self.outputs.len() == 1 {
            let column = Column { states: vec![UNCHANGED], ends: vec![0], bytes: Vec::new() };
            let masked = mask.apply(&Batch { rows: 1, columns: vec![column] });
            let passed = masked.is_ok_and(|columns| columns.len() == 1 && columns[0].states == [UNCHANGED]);
            assert!(passed, "{}: an unchanged value is not let through", self.function.name());
        }
    }

    /// Repeats the example of every function.
    ///
    /// # Panics
    /// An example is missing or does not hold.
    #[track_caller]
    pub fn verify_examples(functions: fn() -> Vec<Function>) {
        let broken: Vec<_> =
            functions().iter().filter_map(|function| Self::broken_example(functions, function)).collect();
        assert!(broken.is_empty(), "examples that do not hold:\n{}", broken.join("\n"));
    }

    /// What is wrong with a function's example; `None` where it holds.
    #[track_caller]
    fn broken_example(functions: fn() -> Vec<Function>, function: &Function) -> Option<String> {
        let (info, name) = (function.info(), function.name());
        let example = &info.example;
        if info.doc.is_empty() || example.inputs.is_empty() {
            return Some(format!("{name} lacks documentation or an example"));
        }
        let mut harness = Self::of(functions(), name).arguments(&example.arguments);
        let column = |position: usize| match position {
            0 => describe_column("value", example_type(info)),
            _ => describe_column(&format!("value{}", position + 1), example_type(info)),
        };
        harness.inputs = (0..example.inputs.len()).map(column).collect();
        let row = std::slice::from_ref(&example.inputs);
        let outcome = if info.outputs.at_most == Some(0) {
            let kept = harness.keep_rows(row).map(|kept| kept == [true]);
            kept.map(|kept| vec![Some(if kept { "keep" } else { "drop" }.to_owned())])
        } else {
            harness.outputs = (0..example.outputs.len()).map(column).collect();
            harness.run_rows(row).map(|mut rows| rows.swap_remove(0))
        };
        (outcome != Ok(example.outputs.clone())).then(|| format!("{name}: {outcome:?}"))
    }

    fn context(&self) -> Context {
        let binding = Binding {
            function: self.function.name().to_owned(),
            table: TableInfo { schema: "public".to_owned(), name: "test".to_owned(), columns: self.inputs.clone() },
            inputs: self.inputs.clone(),
            outputs: self.outputs.clone(),
            arguments: self.arguments.clone(),
            key: self.key.map(|key| key.to_vec()),
        };
        Context::new(binding).unwrap_or_else(|error| panic!("{error}"))
    }

    #[track_caller]
    fn mask(&self) -> Box<dyn BoundMask> {
        self.function.open_mask(self.context()).unwrap_or_else(|error| panic!("{}: {error}", self.function.name()))
    }

    #[track_caller]
    fn batch(&self, rows: &[TestRow]) -> Batch {
        let column = |position: usize| {
            let mut column = Column { states: Vec::new(), ends: Vec::new(), bytes: Vec::new() };
            for row in rows {
                assert_eq!(row.len(), self.inputs.len(), "a row has as many values as there are inputs");
                column.states.push(if row[position].is_some() { VALUE } else { NULL });
                column.bytes.extend_from_slice(row[position].as_deref().unwrap_or_default().as_bytes());
                column
                    .ends
                    .push(u32::try_from(column.bytes.len()).unwrap_or_else(|_| panic!("a test's batch is small")));
            }
            column
        };
        let count = u32::try_from(rows.len()).unwrap_or_else(|_| panic!("a test's batch is small"));
        Batch { rows: count, columns: (0..self.inputs.len()).map(column).collect() }
    }
}

/// Masks a batch and reads the outputs back as rows.
fn apply(mask: &dyn BoundMask, batch: &Batch, rows: usize) -> Result<Vec<TestRow>, Fault> {
    let columns = mask.apply(batch)?;
    let value = |column: &Column, row: usize| {
        let start = if row == 0 { 0 } else { column.ends[row - 1] as usize };
        let bytes = column.bytes[start..column.ends[row] as usize].to_vec();
        (column.states[row] == VALUE)
            .then(|| String::from_utf8(bytes).unwrap_or_else(|_| panic!("an output is not UTF-8")))
    };
    Ok((0..rows).map(|row| columns.iter().map(|column| value(column, row)).collect()).collect())
}

/// The type that a function's example is for: the first that it accepts.
fn example_type(info: &crate::bindings::exports::pgveil::policy::policy::FunctionInfo) -> &str {
    use crate::bindings::exports::pgveil::policy::policy::AcceptedType;
    match info.accepts.first() {
        Some(AcceptedType::Named(name)) => name,
        Some(AcceptedType::Category('N')) => "numeric",
        Some(AcceptedType::Category('D')) => "timestamptz",
        Some(AcceptedType::Category('A')) => "text[]",
        _ => "text",
    }
}

/// A column of a type as SQL writes it.
fn describe_column(name: &str, sql_type: &str) -> ColumnInfo {
    let (base, modifier) = match sql_type.split_once('(') {
        Some((base, rest)) => (base, rest.trim_end_matches(')').parse::<i32>().ok()),
        None => (sql_type, None),
    };
    let type_name = match base {
        "char" => "bpchar".to_owned(),
        _ if base.ends_with("[]") => format!("_{}", base.trim_end_matches("[]")),
        _ => base.to_owned(),
    };
    let category = match type_name.as_str() {
        "text" | "varchar" | "bpchar" | "citext" | "name" => 'S',
        "int2" | "int4" | "int8" | "numeric" | "float4" | "float8" | "money" => 'N',
        "date" | "timestamp" | "timestamptz" | "time" | "timetz" => 'D',
        "bool" => 'B',
        "interval" => 'T',
        "inet" | "cidr" => 'I',
        _ if type_name.starts_with('_') => 'A',
        _ => 'U',
    };
    ColumnInfo {
        name: name.to_owned(),
        base_type_name: type_name.clone(),
        type_name,
        category,
        type_oid: 0,
        typmod: modifier.map_or(-1, |modifier| modifier + 4),
        nullable: true,
        identity: false,
    }
}
