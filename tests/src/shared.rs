//! One source and one target cluster a version, shared by all test processes on this machine.
//!
//! A runner with a process a test would otherwise make two clusters a test. The first process that needs a cluster starts
//! it, under a lock; every process that uses it holds a shared lock on another file, which the kernel gives back however
//! the process ends. A shell that belongs to the cluster tries that lock now and then, and stops and removes the cluster
//! once nobody has held it for a while.

use std::{
    fs::{self, File},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    os::unix::fs::MetadataExt as _,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Mutex, PoisonError},
};

use crate::{
    Result,
    cluster::{Cluster, SUPERUSER, Server},
    version::Major,
};

/// Which end of a job a cluster is for. They are two clusters even of one version: a job between databases of one
/// cluster would see one system identifier, and a transaction at its target would hold up slots at its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The end that is read.
    Source,
    /// The end that is written.
    Target,
}

impl Role {
    const fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Target => "target",
        }
    }
}

/// A lease on a shared cluster, held until the process ends.
struct Lease {
    major: Major,
    role: Role,
    server: Server,
    _users: File,
}

/// The shared cluster of a version and role, started if need be.
///
/// # Errors
/// The version is not installed, or the server does not start.
pub fn server(major: Major, role: Role) -> Result<Server> {
    static LEASES: Mutex<Vec<Lease>> = Mutex::new(Vec::new());
    let mut leases = LEASES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(lease) = leases.iter().find(|lease| (lease.major, lease.role) == (major, role)) {
        return Ok(lease.server.clone());
    }
    let lease = acquire(major, role)?;
    let server = lease.server.clone();
    leases.push(lease);
    Ok(server)
}

fn acquire(major: Major, role: Role) -> Result<Lease> {
    let folder = folder(major, role)?;
    fs::create_dir_all(&folder)?;
    let door = open(&folder.join("door.lock"))?;
    door.lock()?;
    let users = open(&folder.join("users.lock"))?;
    // The lock on `users` is taken behind the door: the caretaker takes both in the same order before it stops anything.
    users.lock_shared()?;
    let home = folder.join("cluster");
    let server = if let Some(server) = running(major, &folder, &home) {
        server
    } else {
        let cluster = Cluster::of(major).start_in(&home)?;
        fs::write(folder.join("port"), cluster.server().port.to_string())?;
        start_caretaker(&folder)?;
        cluster.release()
    };
    Ok(Lease { major, role, server, _users: users })
}

/// A folder for each account, version, role, build of the server and version of the harness' settings.
fn folder(major: Major, role: Role) -> Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    (major.programs()?, include_str!("cluster.rs"), include_str!("shared.rs")).hash(&mut hasher);
    let account = fs::metadata("/proc/self")?.uid();
    let name = format!("{major}-{}-{:08x}", role.name(), hasher.finish() >> 32);
    Ok(std::env::temp_dir().join(format!("pgveil-shared-{account}")).join(name))
}

fn open(path: &Path) -> Result<File> {
    Ok(File::options().create(true).truncate(false).write(true).read(true).open(path)?)
}

fn running(major: Major, folder: &Path, home: &Path) -> Option<Server> {
    let port = fs::read_to_string(folder.join("port")).ok()?.parse().ok()?;
    let server = Server { major, port, home: home.canonicalize().ok()? };
    // Somebody else's server may have got the port of one that is gone.
    let mut client = server.connect(SUPERUSER).ok()?;
    let data: String = client.query_one("SELECT current_setting('data_directory')", &[]).ok()?.get(0);
    (Path::new(&data) == server.data()).then_some(server)
}

/// Seconds between two looks of the caretaker, and how many looks in a row must find nobody.
const LOOK_SECONDS: u32 = 3;
const LOOKS: u32 = 10;

fn start_caretaker(folder: &Path) -> Result<()> {
    let script = format!(
        r#"cd "$0" || exit
        pid=$(head -n 1 cluster/data/postmaster.pid) || exit
        idle=0
        while kill -0 "$pid" 2>/dev/null; do
          sleep {LOOK_SECONDS}
          if flock -n -x users.lock true; then idle=$((idle + 1)); else idle=0; fi
          if [ "$idle" -ge {LOOKS} ]; then
            exec 8>door.lock 9>users.lock
            if flock -n -x 8 && flock -n -x 9; then
              rm -f port
              kill -QUIT "$pid"
              while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
              rm -rf cluster
              exit
            fi
            exec 8>&- 9>&-
            idle=0
          fi
        done"#
    );
    Command::new("sh")
        .arg("-c")
        .arg(script)
        .arg(folder)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(())
}
