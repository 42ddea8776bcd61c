//! A PostgreSQL cluster of one's own.

use std::{
    fmt::Write as _,
    fs::{self, File},
    net::TcpListener,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use crate::{Result, account, tls::Authority, version::Major, wait};

/// The superuser of every cluster here.
pub const SUPERUSER: &str = "postgres";

/// How a server is stopped, gentlest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// `SIGTERM`, smart: waits for the sessions to end by themselves.
    Smart,
    /// `SIGINT`, fast: sessions are cut, what is committed is written, walsenders drain.
    Fast,
    /// `SIGQUIT`, immediate: as a crash, but every process is told.
    Immediate,
    /// `SIGKILL` to the postmaster: it says nothing to anyone.
    Kill,
}

impl Stop {
    const fn signal(self) -> &'static str {
        match self {
            Self::Smart => "TERM",
            Self::Fast => "INT",
            Self::Immediate => "QUIT",
            Self::Kill => "KILL",
        }
    }
}

/// Where a running server is found; cheap to copy about, and good for as long as its cluster lives.
#[derive(Clone, Debug)]
pub struct Server {
    /// Its version.
    pub major: Major,
    /// Its TCP port on 127.0.0.1.
    pub port: u16,
    /// The folder with its data, its log and its socket.
    pub home: PathBuf,
}

impl Server {
    /// The URL of a database on it, for the superuser, over TCP.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgresql://{SUPERUSER}@127.0.0.1:{}/{database}", self.port)
    }

    /// The URL of a database through another port, such as a [`Proxy`](crate::Proxy)'s.
    #[must_use]
    pub fn url_through(&self, port: u16, database: &str) -> String {
        format!("postgresql://{SUPERUSER}@127.0.0.1:{port}/{database}")
    }

    /// A session of the superuser, with the settings pinned on which text output depends.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    pub fn connect(&self, database: &str) -> Result<postgres::Client> {
        let mut config: postgres::Config = self.url(database).parse()?;
        // The clusters have contrary defaults (see `CONTRARY`); a comparison must not depend on them.
        config.application_name("pgveil-tests").connect_timeout(Duration::from_secs(10)).options(
            "-c DateStyle=ISO -c IntervalStyle=postgres -c TimeZone=UTC -c extra_float_digits=3 -c bytea_output=hex",
        );
        Ok(config.connect(postgres::NoTls)?)
    }

    /// Its data directory, WAL included.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.home.join("data")
    }

    /// All that it has logged.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn log(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(&fs::read(self.home.join("log"))?).into_owned())
    }
}

/// Session defaults that no program may depend on: one that forgets to pin what text output depends on is found out.
const CONTRARY: &str = "datestyle = 'SQL, DMY'\nintervalstyle = 'sql_standard'\ntimezone = 'Asia/Kathmandu'\n\
                        extra_float_digits = 0\nbytea_output = 'escape'\n";

/// What logical replication with many tests at a time needs, and no more memory than that.
const ROOMY: &str = "listen_addresses = '127.0.0.1'\nwal_level = logical\nmax_connections = 200\n\
                     max_wal_senders = 60\nmax_replication_slots = 60\nmax_prepared_transactions = 40\n\
                     shared_buffers = 64MB\nmax_wal_size = 2GB\nlog_min_messages = info\n\
                     log_line_prefix = '%m [%p] %a %d '\nwal_sender_timeout = 60s\n";

/// A killed process loses nothing that the kernel already has: only a power cut needs these.
const HASTY: &str = "fsync = off\nfull_page_writes = off\n";

/// A cluster to be made.
#[derive(Debug)]
pub struct Builder {
    major: Major,
    settings: String,
    access: String,
    tls: bool,
    durable: bool,
}

impl Builder {
    /// A line of `postgresql.conf`; later ones win.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        let _ = writeln!(self.settings, "{name} = '{}'", value.replace('\'', "''"));
        self
    }

    /// A line of `pg_hba.conf`, before the line that trusts everyone on loopback.
    #[must_use]
    pub fn access(mut self, line: &str) -> Self {
        self.access.push_str(line);
        self.access.push('\n');
        self
    }

    /// Serves TLS with a certificate for `localhost` and 127.0.0.1 (version 18's build here has none).
    #[must_use]
    pub const fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// `fsync` on, for what is measured or must outlast more than a killed process.
    #[must_use]
    pub const fn durable(mut self) -> Self {
        self.durable = true;
        self
    }

    /// Makes and starts it, under the system's folder for temporary files.
    ///
    /// # Errors
    /// The version is not installed, or the server does not start: the end of its log is in the error.
    pub fn start(self) -> Result<Cluster> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let home = std::env::temp_dir().join(format!("pgveil-{}-{number}-{}", std::process::id(), self.major));
        self.start_in(&home)
    }

    /// Makes and starts it in a folder of the caller's choice, which is emptied first and removed afterwards.
    pub(crate) fn start_in(self, home: &Path) -> Result<Cluster> {
        if self.tls && !self.major.has_tls()? {
            return Err(
                format!("PostgreSQL {} here is built without TLS: test TLS on another version", self.major).into()
            );
        }
        if home.exists() {
            fs::remove_dir_all(home)?;
        }
        fs::create_dir_all(home)?;
        account::give(home)?;
        let home = home.canonicalize()?;
        let authority = if self.tls { Some(Authority::create(&home)?) } else { None };
        initdb(self.major, &home)?;
        let port = free_port()?;
        self.write_configuration(&home, port, authority.as_ref())?;
        let server = Server { major: self.major, port, home };
        let watcher = Watcher::start(&server)?;
        let mut cluster = Cluster { server, authority, process: None, watcher: Some(watcher) };
        cluster.start()?;
        Ok(cluster)
    }

    fn write_configuration(&self, home: &Path, port: u16, authority: Option<&Authority>) -> Result<()> {
        let data = home.join("data");
        let mut text = fs::read_to_string(data.join("postgresql.conf"))?;
        let _ = write!(text, "\n{ROOMY}{CONTRARY}port = {port}\nunix_socket_directories = '{}'\n", home.display());
        if !self.durable {
            text.push_str(HASTY);
        }
        if let Some(authority) = authority {
            let (certificate, key) = (authority.server_certificate(), authority.server_key());
            let _ = write!(
                text,
                "ssl = on\nssl_cert_file = '{}'\nssl_key_file = '{}'\n",
                certificate.display(),
                key.display()
            );
        }
        text.push_str(&self.settings);
        fs::write(data.join("postgresql.conf"), text)?;
        let everyone = "local all all trust\nhost all all 127.0.0.1/32 trust\nlocal replication all trust\n\
                        host replication all 127.0.0.1/32 trust\n";
        fs::write(data.join("pg_hba.conf"), format!("{}{everyone}", self.access))?;
        Ok(())
    }
}

/// A cluster that belongs to one test: stopped and removed when it is dropped, and also when the test is killed.
#[derive(Debug)]
pub struct Cluster {
    server: Server,
    authority: Option<Authority>,
    process: Option<Child>,
    watcher: Option<Watcher>,
}

impl Cluster {
    /// A cluster to be made, of this version.
    #[must_use]
    pub const fn of(major: Major) -> Builder {
        Builder { major, settings: String::new(), access: String::new(), tls: false, durable: false }
    }

    /// Where it is found.
    #[must_use]
    pub const fn server(&self) -> &Server {
        &self.server
    }

    /// Its certificate authority, if it was made with [`Builder::tls`].
    #[must_use]
    pub const fn authority(&self) -> Option<&Authority> {
        self.authority.as_ref()
    }

    /// Starts it again after [`stop`](Self::stop), on the same port, and waits until it answers.
    ///
    /// # Errors
    /// It does not start; the error holds the end of its log.
    pub fn start(&mut self) -> Result<()> {
        wait::until("a PostgreSQL server to answer", wait::LONG, || {
            if self.process.is_none() {
                self.process = Some(self.launch()?);
            }
            if self.exited()?.is_some() {
                self.process = None;
                let log = self.server.log()?;
                // The children of a killed postmaster need a moment to notice; until then the memory is theirs.
                if log.lines().rev().take(3).any(|line| line.contains("still in use")) {
                    return Ok(None);
                }
                return Err(format!("PostgreSQL {} did not start:\n{}", self.server.major, tail(&log)).into());
            }
            Ok(self.server.connect(SUPERUSER).ok().map(drop))
        })
    }

    fn launch(&self) -> Result<Child> {
        let log = File::options().create(true).append(true).open(self.server.home.join("log"))?;
        let mut command = account::command(self.server.major.programs()?.join("postgres"));
        // A process group of its own: Ctrl-C in the terminal, or a runner that ends a test, is not meant for it.
        command.arg("-D").arg(self.server.data()).process_group(0);
        Ok(command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?)
    }

    fn exited(&mut self) -> Result<Option<ExitStatus>> {
        self.process.as_mut().map_or(Ok(None), |process| Ok(process.try_wait()?))
    }

    /// Stops it and waits until the postmaster is gone. A stopped server may be stopped again.
    ///
    /// # Errors
    /// It does not end within a minute (a smart stop waits for its sessions).
    pub fn stop(&mut self, how: Stop) -> Result<()> {
        let Some(process) = self.process.as_mut() else { return Ok(()) };
        signal(process.id(), how.signal())?;
        wait::until("a PostgreSQL server to stop", wait::LONG, || Ok(process.try_wait()?))?;
        self.process = None;
        Ok(())
    }

    /// [`stop`](Self::stop) and [`start`](Self::start).
    ///
    /// # Errors
    /// As those.
    pub fn restart(&mut self, how: Stop) -> Result<()> {
        self.stop(how)?;
        self.start()
    }

    /// Appends a line to `postgresql.conf`; [`restart`](Self::restart), or `SELECT pg_reload_conf()`, makes it count.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn set(&self, name: &str, value: &str) -> Result<()> {
        let path = self.server.data().join("postgresql.conf");
        let mut text = fs::read_to_string(&path)?;
        let _ = writeln!(text, "{name} = '{}'", value.replace('\'', "''"));
        Ok(fs::write(path, text)?)
    }

    /// Lets the server outlive this value; whoever calls it sees to its end.
    pub(crate) fn release(mut self) -> Server {
        self.process = None;
        if let Some(watcher) = self.watcher.take() {
            watcher.dismiss();
        }
        let server = self.server.clone();
        std::mem::forget(self);
        server
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Nothing of it is wanted any more: no checkpoint, no orderly end.
        let _ = self.stop(Stop::Immediate);
        if let Some(watcher) = self.watcher.take() {
            watcher.dismiss();
        }
        let _ = fs::remove_dir_all(&self.server.home);
    }
}

/// Ends a server whose test was killed: a shell that waits for the end of its input, which the kernel closes for it.
#[derive(Debug)]
struct Watcher {
    process: Child,
    lifeline: ChildStdin,
}

impl Watcher {
    fn start(server: &Server) -> Result<Self> {
        // `dismissed` arrives when all went well; the bare end of the input does not.
        let script = r#"read -r word; [ "$word" = dismissed ] && exit; pid=$(head -n 1 "$0/data/postmaster.pid" 2>/dev/null)
                        [ -n "$pid" ] && kill -QUIT "$pid"; rm -rf "$0""#;
        let mut process = Command::new("sh")
            .arg("-c")
            .arg(script)
            .arg(&server.home)
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let lifeline = process.stdin.take().ok_or("a watcher without input")?;
        Ok(Self { process, lifeline })
    }

    fn dismiss(mut self) {
        let _ = std::io::Write::write_all(&mut self.lifeline, b"dismissed\n");
        drop(self.lifeline);
        let _ = self.process.wait();
    }
}

fn initdb(major: Major, home: &Path) -> Result<()> {
    let output = account::command(major.programs()?.join("initdb"))
        .arg("-D")
        .arg(home.join("data"))
        .args(["--no-sync", "--no-instructions", "--encoding=UTF8", "--locale=C.UTF-8", "--auth=trust"])
        .args(["--username", SUPERUSER])
        .output()?;
    if !output.status.success() {
        return Err(format!("initdb {major}: {}", tail(&String::from_utf8_lossy(&output.stderr))).into());
    }
    Ok(())
}

/// A port that is free now. Another process may take it before the server does: then the start fails and says so.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Sends a signal by its name. The standard library has no call for it, and this crate no unsafe code.
pub(crate) fn signal(process: u32, name: &str) -> Result<()> {
    let status = Command::new("sh").arg("-c").arg(format!("kill -{name} {process}")).status()?;
    if status.success() { Ok(()) } else { Err(format!("kill -{name} {process}: {status}").into()) }
}

/// The last lines of a log, for an error.
fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}
