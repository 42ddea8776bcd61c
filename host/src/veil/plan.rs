//! What happens to each column of each table, decided before the first row.
//!
//! Everything is born refused: a column that nothing decides, a rule that matches no column, a function that is not what the policy
//! takes it for. All that is wrong is collected, each with its place in the policy file, and any of it refuses the job.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::abi::{FunctionKind, Guarantees};
use super::audit::Audit;
use super::binding::{BindingPlan, BindingSpec};
use super::fingerprint::Fingerprint;
use super::guest::Guest;
use super::instance::{Bound, Instance};
use crate::config::{
    Decision, Diagnostic, Diagnostics, Digest, FingerprintInputs, KeyCheckValue, KeyMaterial, Policy, Rest, Span,
    TableName, TablePolicy, nearest,
};
use crate::error::{Error, Kind, Result};
use crate::relation::{Column, Table};

/// What a job's masking is made of.
pub struct VeilParts<'a> {
    /// The policy, checked in itself.
    pub policy: &'a Policy,
    /// The job's tables, in every shape that the stream may announce.
    pub tables: &'a [Arc<Table>],
    /// The guests, by the policy's names for them.
    pub guests: &'a BTreeMap<String, Arc<Guest>>,
    /// The key material, by the policy's names for it.
    pub keys: &'a BTreeMap<String, KeyMaterial>,
    /// The share of batches that are run twice and compared, in percent.
    pub audit_percent: f64,
}

/// A job's masking, ready to run: shared by all workers.
pub struct Veil {
    pub(super) guests: Vec<GuestPlan>,
    pub(super) tables: HashMap<u32, Vec<TablePlan>>,
    pub(super) audit: Audit,
    fingerprint: Fingerprint,
}

/// A guest with all that is bound in each of its instances.
pub(super) struct GuestPlan {
    pub guest: Arc<Guest>,
    pub bindings: Vec<BindingSpec>,
}

/// A table with a decision for every column.
pub(super) struct TablePlan {
    pub table: Arc<Table>,
    /// One for each column of the table.
    pub columns: Vec<ColumnPlan>,
    pub filters: Vec<BindingPlan>,
    pub masks: Vec<BindingPlan>,
    pub fingerprint: Fingerprint,
}

/// What happens to a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnPlan {
    /// It goes on as it arrived.
    Pass,
    /// It becomes NULL.
    Null,
    /// It is this output of this mask.
    Masked {
        /// The place among the table's masks.
        mask: usize,
        /// The place among the mask's outputs.
        output: usize,
    },
}

impl Veil {
    /// Plans every table and binds every function once, in an instance that is thrown away.
    ///
    /// # Errors
    /// All that is wrong, with its places in the policy file.
    pub fn compile(parts: &VeilParts<'_>) -> std::result::Result<Veil, Diagnostics> {
        let mut planner = Planner::new(parts);
        let mut tables: HashMap<u32, Vec<TablePlan>> = HashMap::new();
        for table in parts.tables {
            if let Some(plan) = planner.table(table) {
                tables.entry(table.relation_id).or_default().push(plan);
            }
        }
        for policy in parts.policy.tables.values() {
            if !parts.tables.iter().any(|table| table.name == policy.table.value) {
                planner.error(
                    field(&policy.table),
                    policy.table.span,
                    format!("the job has no table {}", policy.table.value),
                );
            }
        }
        planner.diagnostics.sort();
        if planner.diagnostics.has_errors() {
            return Err(planner.diagnostics);
        }
        let fingerprint = Fingerprint::of_job(tables.values().flatten().map(|plan| plan.fingerprint));
        Ok(Veil { guests: planner.guests, tables, audit: Audit::every(parts.audit_percent), fingerprint })
    }

    /// The fingerprint of the whole job.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The fingerprint of each table, by its name.
    #[must_use]
    pub fn table_fingerprints(&self) -> BTreeMap<TableName, Fingerprint> {
        self.tables.values().flatten().map(|plan| (plan.table.name.clone(), plan.fingerprint)).collect()
    }

    /// The source's oids of the tables that have a filter.
    pub fn filtered(&self) -> impl Iterator<Item = u32> + '_ {
        self.tables.iter().filter(|(_, plans)| plans.iter().any(|plan| !plan.filters.is_empty())).map(|(id, _)| *id)
    }
}

impl GuestPlan {
    /// Starts an instance and binds everything in it before it sees a row.
    ///
    /// # Errors
    /// The kind of trap or limit; [`Kind::GuestNotDeterministic`] when a binding promises something else than it did at first.
    pub(super) fn start(&self) -> Result<Instance> {
        let mut instance = self.guest.start()?;
        for (place, spec) in self.bindings.iter().enumerate() {
            let bound = instance.bind(spec.kind, &spec.info).map_err(|error| error.within(self.guest.place()))?;
            let (next, bound, guarantees) = bound;
            let promised = spec.kind == FunctionKind::Filter || guarantees == spec.guarantees;
            if !promised || bound != Bound(place) {
                let place = format!("{}: function {}: bind", self.guest.place(), spec.info.function);
                return Err(Error::new(Kind::GuestNotDeterministic, place));
            }
            instance = next;
        }
        Ok(instance)
    }
}

/// Makes plans and collects what is wrong.
pub(super) struct Planner<'a> {
    pub parts: &'a VeilParts<'a>,
    pub guests: Vec<GuestPlan>,
    pub diagnostics: Diagnostics,
}

impl<'a> Planner<'a> {
    fn new(parts: &'a VeilParts<'a>) -> Self {
        let plan = |guest: &Arc<Guest>| GuestPlan { guest: Arc::clone(guest), bindings: Vec::new() };
        Planner { parts, guests: parts.guests.values().map(plan).collect(), diagnostics: Diagnostics::default() }
    }

    /// Reports something wrong at a place of the policy file.
    pub(super) fn error(&mut self, field: String, span: Span, message: String) {
        self.diagnostics.push(Diagnostic::error(&self.parts.policy.file, field, message).at(span));
    }

    /// Reports something wrong, and says what to do.
    pub(super) fn error_with_remedy(&mut self, field: String, span: Span, message: String, remedy: &str) {
        self.diagnostics.push(Diagnostic::error(&self.parts.policy.file, field, message).at(span).remedy(remedy));
    }

    fn table(&mut self, table: &Arc<Table>) -> Option<TablePlan> {
        let parts = self.parts;
        let Some(policy) = parts.policy.tables.get(&table.name) else {
            let message = format!("{} is a table of the job, but the policy does not name it", table.name);
            self.diagnostics.push(Diagnostic::error(&parts.policy.file, "tables", message));
            return None;
        };
        let path = field(&policy.table);
        let mut decided: Vec<Option<ColumnPlan>> = vec![None; table.columns.len()];
        let mut masks = Vec::new();
        for column in policy.columns.values() {
            let path = format!("{path}.columns.{}", column.column.value);
            match &column.decision {
                Decision::Pass | Decision::Null => {
                    let Some(position) = self.column(table, &path, &column.column.value, column.column.span) else {
                        continue;
                    };
                    let plan =
                        if matches!(column.decision, Decision::Pass) { ColumnPlan::Pass } else { ColumnPlan::Null };
                    self.check_null(&table.columns[position], plan, &path, column.span);
                    self.decide(&mut decided, table, position, plan, &path, column.span);
                }
                Decision::Mask(binding) => {
                    let Some(mask) = self.binding(table, binding, FunctionKind::Mask, &path) else { continue };
                    for (output, position) in mask.outputs.iter().enumerate() {
                        let plan = ColumnPlan::Masked { mask: masks.len(), output };
                        self.decide(&mut decided, table, *position, plan, &path, column.span);
                    }
                    masks.push(mask);
                }
            }
        }
        let filters = policy.keep.iter().enumerate().filter_map(|(place, binding)| {
            self.binding(table, binding, FunctionKind::Filter, &format!("{path}.keep[{place}]"))
        });
        let filters = filters.collect();
        let columns = self.rest(table, policy, &path, &decided)?;
        // What a binding lacks is in the diagnostics already; the fingerprint needs guests and keys to be there.
        if self.diagnostics.has_errors() {
            return None;
        }
        let fingerprint = Fingerprint::of_table(policy, table, parts);
        Some(TablePlan { table: Arc::clone(table), columns, filters, masks, fingerprint })
    }

    /// A column by its exact name.
    pub(super) fn column(&mut self, table: &Table, path: &str, name: &str, span: Span) -> Option<usize> {
        let position = table.column(name);
        // Of a table that changed its shape, each shape has the columns that it has; the policy is written for the latest.
        let elsewhere = |other: &Arc<Table>| other.relation_id == table.relation_id && other.column(name).is_some();
        if position.is_none() && !self.parts.tables.iter().any(elsewhere) {
            let message = format!("{} has no column `{name}`, or generates it", table.name);
            let names = table.columns.iter().map(|column| column.name.as_str());
            let remedy = nearest(name, names)
                .map_or("names are exact, upper and lower case included".to_owned(), |near| {
                    format!("did you mean `{near}`?")
                });
            self.error_with_remedy(path.to_owned(), span, message, &remedy);
        }
        position
    }

    fn decide(
        &mut self,
        decided: &mut [Option<ColumnPlan>],
        table: &Table,
        position: usize,
        plan: ColumnPlan,
        path: &str,
        span: Span,
    ) {
        if decided[position].replace(plan).is_some() {
            self.error(path.to_owned(), span, format!("column `{}` is decided twice", table.columns[position].name));
        }
    }

    fn check_null(&mut self, column: &Column, plan: ColumnPlan, path: &str, span: Span) {
        if plan == ColumnPlan::Null && column.not_null {
            let message = format!("column `{}` is NOT NULL and cannot be made NULL", column.name);
            self.error_with_remedy(path.to_owned(), span, message, "mask it with a constant instead");
        }
    }

    /// Decides the columns that the policy does not name, or refuses them.
    fn rest(
        &mut self,
        table: &Table,
        policy: &TablePolicy,
        path: &str,
        decided: &[Option<ColumnPlan>],
    ) -> Option<Vec<ColumnPlan>> {
        let named: Vec<&str> = policy.decided().collect();
        let mut columns = Vec::with_capacity(decided.len());
        for (column, decision) in table.columns.iter().zip(decided) {
            let plan = match (decision, policy.rest.value) {
                (Some(plan), _) => *plan,
                // Its binding was refused, and that has been said.
                (None, _) if named.contains(&column.name.as_str()) => return None,
                (None, Rest::Pass) => ColumnPlan::Pass,
                (None, Rest::Null) => {
                    self.check_null(column, ColumnPlan::Null, &format!("{path}.rest"), policy.rest.span);
                    ColumnPlan::Null
                }
                (None, Rest::Deny) => {
                    let message = format!("column `{}` is not decided", column.name);
                    let remedy = format!("write `{}: pass`, `{0}: \"null\"` or a mask under `columns`", column.name);
                    self.error_with_remedy(path.to_owned(), policy.table.span, message, &remedy);
                    continue;
                }
            };
            columns.push(plan);
        }
        (columns.len() == decided.len()).then_some(columns)
    }
}

/// A table is fingerprinted only when each of its bindings was planned, so that its guests and keys are there.
impl FingerprintInputs for VeilParts<'_> {
    fn guest_digest(&self, guest: &str) -> Digest {
        self.guests[guest].digest()
    }

    fn key_check_value(&self, key: &str) -> KeyCheckValue {
        self.keys[key].check_value()
    }
}

/// The place of a table in the policy file.
fn field(table: &TableName) -> String {
    format!("tables.{:?}", table.to_string())
}

/// Whether a function promises what a column needs that identifies rows.
pub(super) fn lacks(guarantees: Guarantees) -> Option<&'static str> {
    if !guarantees.contains(Guarantees::DETERMINISTIC) {
        Some("deterministic")
    } else if !guarantees.contains(Guarantees::INJECTIVE) {
        Some("injective")
    } else {
        None
    }
}
