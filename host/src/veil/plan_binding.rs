//! A policy's call of a function, checked against what the guest describes and bound once.

use super::abi::{AcceptedType, BindingInfo, ColumnInfo, FunctionInfo, FunctionKind, Guarantees, KeyUse, TableInfo};
use super::binding::{BindingPlan, BindingSpec};
use super::check::OutputRule;
use super::guest::Guest;
use super::instance::Bound;
use super::plan::{Planner, lacks};
use crate::config::{Binding, Spanned, nearest};
use crate::relation::{Column, ReplicaIdentity, Table};

impl Planner<'_> {
    /// Checks and binds one call. `None` when something is wrong, which has been reported.
    pub(super) fn binding(
        &mut self,
        table: &Table,
        binding: &Binding,
        kind: FunctionKind,
        path: &str,
    ) -> Option<BindingPlan> {
        let parts = self.parts;
        let span = binding.function.span;
        let name = &binding.function.value;
        let place = parts.guests.keys().position(|guest| *guest == name.guest);
        let guest = place.and_then(|place| self.guests.get(place)).map(|plan| plan.guest.clone());
        let (Some(place), Some(guest)) = (place, guest) else {
            self.error(path.to_owned(), span, format!("guest `{}` is not loaded", name.guest));
            return None;
        };
        let Some(function) = guest.function(&name.function) else {
            let names = guest.functions().iter().map(|function| function.name.as_str());
            let near = nearest(&name.function, names).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            self.error(path.to_owned(), span, format!("{} has no function `{}`{near}", guest.place(), name.function));
            return None;
        };
        let inputs = self.columns(table, &binding.columns, path)?;
        let outputs = self.columns(table, &binding.outputs, path)?;
        let fits = self.check_shape(function, kind, binding, table, &inputs, &outputs, path);
        let info = self.info(table, binding, &inputs, &outputs, path)?;
        if !fits {
            return None;
        }
        let guarantees = self.bind(&guest, function, kind, &info, binding, path)?;
        if !self.check_guarantees(table, &inputs, &outputs, guarantees, binding, path) {
            return None;
        }
        let one_to_one = inputs.len() == 1 && outputs.len() == 1;
        let rules =
            outputs.iter().map(|position| OutputRule::new(&table.columns[*position], guarantees, one_to_one)).collect();
        let bindings = &mut self.guests[place].bindings;
        bindings.push(BindingSpec { kind, info, guarantees });
        Some(BindingPlan {
            guest: place,
            bound: Bound(bindings.len() - 1),
            on_keys: outputs.iter().any(|position| table.columns[*position].identity),
            inputs,
            outputs,
            rules,
            place: format!("{}: function {}", guest.place(), name.function),
        })
    }

    /// The positions of named columns, each once. `None` when one is missing.
    fn columns(&mut self, table: &Table, names: &[Spanned<String>], path: &str) -> Option<Vec<usize>> {
        let positions: Vec<Option<usize>> =
            names.iter().map(|name| self.column(table, path, &name.value, name.span)).collect();
        positions.into_iter().collect()
    }

    /// Kind, number of columns, types and key, against the description.
    #[expect(clippy::too_many_arguments, reason = "one call site, and each is a different thing")]
    fn check_shape(
        &mut self,
        function: &FunctionInfo,
        kind: FunctionKind,
        binding: &Binding,
        table: &Table,
        inputs: &[usize],
        outputs: &[usize],
        path: &str,
    ) -> bool {
        let span = binding.function.span;
        let name = &binding.function.value;
        let mut wrong = Vec::new();
        if function.kind != kind {
            wrong.push(format!("`{name}` is a {}, not a {}", kind_name(function.kind), kind_name(kind)));
        }
        if !function.inputs.admits(inputs.len()) {
            wrong.push(format!("`{name}` does not take {} columns", inputs.len()));
        }
        if kind == FunctionKind::Mask && !function.outputs.admits(outputs.len()) {
            wrong.push(format!("`{name}` does not write {} columns", outputs.len()));
        }
        for position in inputs {
            let column = &table.columns[*position];
            if !accepts(function, column) {
                wrong.push(format!("`{name}` does not accept column `{}` of type {}", column.name, column.type_name));
            }
        }
        match (function.key, &binding.key) {
            (KeyUse::None, Some(_)) => wrong.push(format!("`{name}` has no use for a key")),
            (KeyUse::Required, None) => wrong.push(format!("`{name}` needs a key")),
            _ => {}
        }
        let fits = wrong.is_empty();
        wrong.into_iter().for_each(|message| self.error(path.to_owned(), span, message));
        fits
    }

    /// What the guest is told. `None` when the key is missing.
    fn info(
        &mut self,
        table: &Table,
        binding: &Binding,
        inputs: &[usize],
        outputs: &[usize],
        path: &str,
    ) -> Option<BindingInfo> {
        let key = match &binding.key {
            None => None,
            Some(name) => {
                let Some(material) = self.parts.keys.get(&name.value) else {
                    self.error(path.to_owned(), name.span, format!("key `{}` is not there", name.value));
                    return None;
                };
                let domain = binding.domain.as_ref().map_or("", |domain| domain.value.as_str());
                Some(material.derive_key(&name.value, domain).to_vec())
            }
        };
        let describe = |position: &usize| column_info(&table.columns[*position]);
        let granted =
            (0..table.columns.len()).filter(|position| inputs.contains(position) || outputs.contains(position));
        Some(BindingInfo {
            function: binding.function.value.function.clone(),
            table: TableInfo {
                schema: table.name.schema.clone(),
                name: table.name.name.clone(),
                columns: granted.map(|position| column_info(&table.columns[position])).collect(),
            },
            inputs: inputs.iter().map(describe).collect(),
            outputs: outputs.iter().map(describe).collect(),
            arguments: serde_json::Value::Object(binding.arguments.clone()).to_string(),
            key,
        })
    }

    /// Binds in an instance that sees no row, and tells what the binding guarantees.
    fn bind(
        &mut self,
        guest: &Guest,
        function: &FunctionInfo,
        kind: FunctionKind,
        info: &BindingInfo,
        binding: &Binding,
        path: &str,
    ) -> Option<Guarantees> {
        let bound = guest.start().and_then(|instance| instance.bind(kind, info));
        let guarantees = match bound {
            Ok((_, _, guarantees)) if kind == FunctionKind::Mask => guarantees,
            Ok(_) => function.guarantees,
            Err(error) => {
                let why = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
                let message = format!("`{}` cannot be bound: {why}", binding.function.value);
                self.error(path.to_owned(), binding.function.span, message);
                return None;
            }
        };
        if guarantees & function.guarantees != function.guarantees {
            let message = format!("`{}` promises less when bound than it describes", binding.function.value);
            self.error(path.to_owned(), binding.function.span, message);
            return None;
        }
        Some(guarantees)
    }

    /// What identity and uniqueness ask of a binding.
    fn check_guarantees(
        &mut self,
        table: &Table,
        inputs: &[usize],
        outputs: &[usize],
        guarantees: Guarantees,
        binding: &Binding,
        path: &str,
    ) -> bool {
        let span = binding.function.span;
        let name = &binding.function.value;
        let mut wrong = Vec::new();
        if !guarantees.contains(Guarantees::DETERMINISTIC) {
            wrong.push(format!("`{name}` is not declared deterministic: snapshot and stream would not agree"));
        }
        // Under FULL the old row comes whole, and rows that are equal when masked are interchangeable.
        let has_keys = table.replica_identity != ReplicaIdentity::Full;
        for column in outputs.iter().map(|position| &table.columns[*position]) {
            let identifies = column.identity && has_keys;
            if identifies
                && let Some(input) = inputs.iter().map(|each| &table.columns[*each]).find(|each| !each.identity)
            {
                wrong.push(format!(
                    "`{name}` writes identity column `{}` and reads `{}`, which old keys do not hold",
                    column.name, input.name
                ));
            }
            if let Some(promise) = lacks(guarantees).filter(|_| identifies || column.unique) {
                let role = if identifies { "identity" } else { "unique" };
                wrong.push(format!("`{name}` writes {role} column `{}` but is not declared {promise}", column.name));
            }
        }
        let holds = wrong.is_empty();
        wrong.into_iter().for_each(|message| self.error(path.to_owned(), span, message));
        holds
    }
}

/// Whether a function accepts a column. A domain counts as the type beneath it.
fn accepts(function: &FunctionInfo, column: &Column) -> bool {
    function.accepts.iter().any(|accepted| match accepted {
        AcceptedType::Any => true,
        AcceptedType::Named(name) => *name == column.base_catalog_type,
        AcceptedType::Category(category) => *category == column.category,
    })
}

fn column_info(column: &Column) -> ColumnInfo {
    ColumnInfo {
        name: column.name.clone(),
        type_name: column.catalog_type.clone(),
        base_type_name: column.base_catalog_type.clone(),
        category: column.category,
        type_oid: column.type_oid,
        typmod: column.type_modifier,
        nullable: !column.not_null,
        identity: column.identity,
    }
}

fn kind_name(kind: FunctionKind) -> &'static str {
    match kind {
        FunctionKind::Mask => "mask",
        FunctionKind::Filter => "filter",
    }
}
