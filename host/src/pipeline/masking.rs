//! The policy's guests and keys, loaded; and the masking of a job's tables, made of both once the tables are known.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use crate::config::{
    Decision, Digest, Guest as PolicyGuest, GuestSource, Job, KeyMaterial, Policy, Rest, TableName, TablePolicy,
};
use crate::error::{Error, Kind, Result};
use crate::limits;
use crate::relation::Table;
use crate::schema::HiddenColumns;
use crate::source::shape::Decisions;
use crate::veil::{Guest, GuestLimits, Sandbox, Veil, VeilParts, VeilPool};

/// What the policy names beside its tables: admitted guests, key material.
pub struct Materials {
    guests: BTreeMap<String, Arc<Guest>>,
    keys: BTreeMap<String, KeyMaterial>,
}

impl Materials {
    /// Reads, admits and compiles the guests, and takes the keys from the environment. Blocks for as long as compiling takes.
    ///
    /// # Errors
    /// [`Kind::Environment`] for a key, [`Kind::File`] for a component that cannot be read, [`Kind::GuestRefused`].
    pub fn load(policy: &Policy, job: &Job) -> Result<Materials> {
        let mut keys = BTreeMap::new();
        for (name, key) in &policy.keys {
            let material = KeyMaterial::from_env(&key.env.value);
            keys.insert(
                name.clone(),
                material.map_err(|error| Error::new(Kind::Environment, format!("key {name}")).because(error))?,
            );
        }
        let sandbox = Sandbox::new(GuestLimits::from(&job.limits))?;
        let mut guests = BTreeMap::new();
        for (name, guest) in &policy.guests {
            guests.insert(name.clone(), load_guest(&sandbox, name, guest)?);
        }
        Ok(Materials { guests, keys })
    }

    /// The guests' names and digests.
    pub fn digests(&self) -> impl Iterator<Item = (String, String)> + '_ {
        self.guests.iter().map(|(name, guest)| (name.clone(), guest.digest().to_string()))
    }

    /// Decides every column of the tables and binds every function.
    ///
    /// # Errors
    /// [`Kind::PolicyFile`], its cause being all that is wrong, each with its place in the file.
    pub fn plan(&self, policy: &Policy, job: &Job, tables: &[Arc<Table>]) -> Result<Masking> {
        let parts = VeilParts {
            policy,
            tables,
            guests: &self.guests,
            keys: &self.keys,
            audit_percent: job.safety.audit_percent,
        };
        let veil = Veil::compile(&parts)
            .map_err(|found| Error::new(Kind::PolicyFile, policy.file.path.display().to_string()).because(found))?;
        let filtered: HashSet<u32> = veil.filtered().collect();
        let hidden = tables.iter().map(|table| (table.name.clone(), hidden_columns(policy, table))).collect();
        let filtered_names = tables
            .iter()
            .filter(|table| filtered.contains(&table.relation_id))
            .map(|table| table.name.clone())
            .collect();
        Ok(Masking { veil: Arc::new(veil), filtered, filtered_names, hidden })
    }

    /// Digests of what the policy decides for a table, column by column: what is compared when a table has changed its shape.
    /// The policy must have been planned for the table.
    #[must_use]
    pub fn decisions(&self, policy: &Policy, table: &Table) -> Decisions {
        let Some(decided) = policy.tables.get(&table.name) else { return Decisions::default() };
        let parts = VeilParts { policy, tables: &[], guests: &self.guests, keys: &self.keys, audit_percent: 0.0 };
        let digest = |part: &TablePolicy| blake3::hash(part.canonical(&parts).as_bytes()).to_hex().to_string();
        let column = |name: &str| {
            let mut alone = decided.clone();
            alone.keep.clear();
            alone.columns.retain(|key, column| match &column.decision {
                Decision::Mask(mask) => mask.outputs.iter().any(|output| output.value == name),
                Decision::Pass | Decision::Null => key == name,
            });
            if !alone.columns.is_empty() {
                // Named, so what happens to the columns not named decides nothing.
                alone.rest.value = Rest::Deny;
            }
            digest(&alone)
        };
        let mut filters = decided.clone();
        filters.columns.clear();
        filters.rest.value = Rest::Deny;
        Decisions {
            columns: table.columns.iter().map(|found| (found.name.clone(), column(&found.name))).collect(),
            filters: digest(&filters),
        }
    }
}

/// The masking of a job's tables, decided.
pub struct Masking {
    veil: Arc<Veil>,
    /// The tables that the policy filters, by the source's oid.
    pub filtered: HashSet<u32>,
    /// The same by name.
    pub filtered_names: BTreeSet<TableName>,
    /// The columns that do not reach the target as they are.
    pub hidden: HiddenColumns,
}

impl Masking {
    /// The fingerprint of all tables.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        self.veil.fingerprint().to_string()
    }

    /// The fingerprint of one table; empty for one that is not in the job.
    #[must_use]
    pub fn table_fingerprint(&self, table: &TableName) -> String {
        self.veil.table_fingerprints().get(table).map(ToString::to_string).unwrap_or_default()
    }

    /// Threads that run it.
    ///
    /// # Errors
    /// When they cannot be started.
    pub fn pool(&self, workers: usize) -> Result<Arc<VeilPool>> {
        VeilPool::new(Arc::clone(&self.veil), workers).map(Arc::new)
    }
}

/// The policy without what it says of columns that `later` shapes of its tables have and `earlier` ones did not: what it said,
/// if nothing else was changed, when the earlier shapes were copied.
#[must_use]
pub fn restricted(policy: &Policy, earlier: &[Arc<Table>], later: &[Arc<Table>]) -> Policy {
    let mut policy = policy.clone();
    for table in earlier {
        let Some(now) = later.iter().find(|now| now.relation_id == table.relation_id) else { continue };
        if let Some(decided) = policy.tables.get_mut(&table.name) {
            decided.columns.retain(|name, _| table.column(name).is_some() || now.column(name).is_none());
        }
    }
    policy
}

fn load_guest(sandbox: &Sandbox, name: &str, guest: &PolicyGuest) -> Result<Arc<Guest>> {
    let pinned = |digest: &Option<crate::config::Spanned<Digest>>| digest.as_ref().map(|digest| digest.value);
    match &guest.source {
        GuestSource::Builtin(builtin) => {
            let unknown =
                || Error::new(Kind::GuestRefused, format!("guest {name}: there is no builtin {}", builtin.value));
            let artifact = Some(pgveil_artifacts::STANDARD)
                .filter(|standard| standard.name == builtin.value)
                .ok_or_else(unknown)?;
            Guest::load(sandbox, name, artifact.component, None)
        }
        GuestSource::File { path, blake3 } => {
            Guest::load(sandbox, name, &read_component(name, &path.value)?, pinned(blake3))
        }
    }
}

/// Reads a component, and no more of it than is admitted in the end.
fn read_component(name: &str, path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read =
        std::fs::File::open(path).and_then(|file| file.take(limits::GUEST_FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
    match read {
        Ok(_) => Ok(bytes),
        Err(error) => Err(Error::new(Kind::File, format!("guest {name}: {}", path.display())).because(error)),
    }
}

/// The columns of a table that do not go on as they arrived.
fn hidden_columns(policy: &Policy, table: &Table) -> BTreeSet<String> {
    let Some(decided) = policy.tables.get(&table.name) else {
        return table.columns.iter().map(|column| column.name.clone()).collect();
    };
    let passes = |name: &str| {
        let masked = decided.masks().any(|mask| mask.outputs.iter().any(|output| output.value == name));
        let decision = decided.columns.get(name).map(|column| &column.decision);
        !masked
            && (matches!(decision, Some(Decision::Pass)) || (decision.is_none() && decided.rest.value == Rest::Pass))
    };
    table.columns.iter().filter(|column| !passes(&column.name)).map(|column| column.name.clone()).collect()
}
