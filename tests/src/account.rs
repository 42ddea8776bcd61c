//! PostgreSQL refuses to run as root: as root, the servers run as another account.

use std::{
    fs,
    os::unix::{fs::MetadataExt as _, fs::chown, process::CommandExt as _},
    path::Path,
    process::Command,
    sync::OnceLock,
};

use crate::Result;

/// The account that runs the servers when the tests run as root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account {
    user: u32,
    group: u32,
}

impl Account {
    /// The account of the servers: `None` when the caller's own will do.
    fn of_servers() -> Option<Self> {
        static ACCOUNT: OnceLock<Option<Account>> = OnceLock::new();
        *ACCOUNT.get_or_init(|| {
            // The owner of one's own process entry is oneself; std has no `geteuid`.
            let caller = fs::metadata("/proc/self").ok()?.uid();
            if caller != 0 {
                return None;
            }
            let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
            // `nobody` is on every Linux; 65534 is its number on all of them.
            let nobody = Self { user: 65_534, group: 65_534 };
            Some(Self::find(&accounts, "postgres").or_else(|| Self::find(&accounts, "nobody")).unwrap_or(nobody))
        })
    }

    fn find(accounts: &str, name: &str) -> Option<Self> {
        let fields: Vec<&str> = accounts
            .lines()
            .map(|line| line.split(':').collect())
            .find(|fields: &Vec<&str>| fields.first() == Some(&name))?;
        Some(Self { user: fields.get(2)?.parse().ok()?, group: fields.get(3)?.parse().ok()? })
    }
}

/// A command that runs under the servers' account.
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    if let Some(account) = Account::of_servers() {
        command.uid(account.user).gid(account.group);
    }
    // The caller's folder may be closed to that account, and its variables (PGHOST, LC_ALL …) are not the servers'.
    command.current_dir("/").env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("LC_ALL", "C");
    command
}

/// Gives `path` to the servers' account.
pub(crate) fn give(path: &Path) -> Result<()> {
    if let Some(account) = Account::of_servers() {
        chown(path, Some(account.user), Some(account.group)).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_read_from_the_passwd_file() {
        let accounts = "root:x:0:0:root:/root:/bin/sh\npostgres:x:101:104::/var/lib/postgresql:/bin/sh\n";
        let found = Account::find(accounts, "postgres").unwrap();
        assert_eq!((found.user, found.group), (101, 104));
        assert!(Account::find(accounts, "nobody").is_none());
    }
}
