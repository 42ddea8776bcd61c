//! The built `pgveil` binary, run with a job file and a policy file of the test's.

use std::{
    ffi::OsString,
    fmt, fs,
    io::{BufRead as _, BufReader, Read},
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, SystemTime},
};

use tempfile::TempDir;

use crate::{
    Result,
    cluster::signal,
    database::Pair,
    version::{Major, repository},
    wait,
};

/// The path of the `pgveil` binary: `PGVEIL_BIN`, else the one in the target folder this test was built into.
///
/// # Errors
/// There is none, or it is older than its sources.
pub fn binary() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("PGVEIL_BIN") {
        return Ok(path.into());
    }
    let test = std::env::current_exe()?;
    let profile = test.ancestors().nth(2).ok_or("a test outside a target folder")?;
    let binary = profile.join("pgveil");
    let built = fs::metadata(&binary).and_then(|file| file.modified());
    let built = built.map_err(|error| format!("{}: {error}: run `cargo build --workspace` first", binary.display()))?;
    let sources = ["host/src", "host/wire/src", "host/Cargo.toml"];
    match sources.iter().filter_map(|path| newest(&repository().join(path))).max() {
        Some(changed) if changed > built => {
            Err(format!("{} is older than its sources: run `cargo build --workspace` first", binary.display()).into())
        }
        _ => Ok(binary),
    }
}

fn newest(path: &Path) -> Option<SystemTime> {
    let entry = fs::metadata(path).ok()?;
    if entry.is_dir() {
        return fs::read_dir(path).ok()?.flatten().filter_map(|entry| newest(&entry.path())).max();
    }
    // What an editor or a snapshot test leaves beside them is no source.
    if path.file_name()?.to_str()?.starts_with('.') {
        return None;
    }
    entry.modified().ok()
}

/// A job in a folder of its own: `job.yaml`, `policy.yaml`, and the environment to run it in.
#[derive(Debug)]
pub struct Job {
    folder: TempDir,
    environment: Vec<(OsString, OsString)>,
    id: String,
    publication: String,
    tables: Vec<String>,
    sections: String,
}

impl Job {
    /// A job between the two databases, with a policy's text. Slot and job have the source database's name, so that jobs
    /// of other tests on the same cluster are not in its way; the publication is `pgveil`.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn new(pair: &Pair, tables: &[&str], policy: &str) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("pgveil-job-").tempdir()?;
        let mut job = Self {
            folder,
            environment: Vec::new(),
            id: pair.source.name().to_owned(),
            publication: "pgveil".to_owned(),
            tables: tables.iter().map(|&table| table.to_owned()).collect(),
            sections: "schema: { mode: existing }\n".to_owned(),
        };
        // `pg_dump` of the newest version reads all of them.
        let mut path = OsString::from(Major::V18.programs()?);
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        job = job.environment("PATH", path);
        job = job.environment("PGVEIL_SOURCE_URL", pair.source.url());
        job = job.environment("PGVEIL_TARGET_URL", pair.target.url());
        job.write_policy(policy)?;
        job.write()?;
        Ok(job)
    }

    /// A variable of its environment; the last value given for a name counts.
    #[must_use]
    pub fn environment(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// The publication's name, in place of `pgveil`.
    ///
    /// # Errors
    /// The job file cannot be written.
    pub fn publication(mut self, name: &str) -> Result<Self> {
        name.clone_into(&mut self.publication);
        self.write()?;
        Ok(self)
    }

    /// The rest of the job file as YAML text, in place of `schema: { mode: existing }`.
    ///
    /// # Errors
    /// The job file cannot be written.
    pub fn sections(mut self, text: &str) -> Result<Self> {
        text.clone_into(&mut self.sections);
        self.write()?;
        Ok(self)
    }

    /// Writes the policy file again, as an operator would between two runs.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_policy(&self, text: &str) -> Result<()> {
        Ok(fs::write(self.folder.path().join("policy.yaml"), text)?)
    }

    fn write(&self) -> Result<()> {
        let text = format!(
            "job: {{ id: {id} }}\n\
             source: {{ url_env: PGVEIL_SOURCE_URL, publication: {publication}, slot: {id} }}\n\
             target: {{ url_env: PGVEIL_TARGET_URL }}\n\
             tables: [{tables}]\n\
             policy: policy.yaml\n{sections}",
            id = self.id,
            publication = self.publication,
            tables = self.tables.iter().map(|table| yaml_text(table)).collect::<Vec<_>>().join(", "),
            sections = self.sections,
        );
        Ok(fs::write(self.path(), text)?)
    }

    /// The slot's name, and the job's.
    #[must_use]
    pub fn slot(&self) -> &str {
        &self.id
    }

    /// The job file. Its folder is the place for guests and other files of the test.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("job.yaml")
    }

    /// Runs a command to its end.
    ///
    /// # Errors
    /// It cannot be started, or has not ended after two minutes (it is killed, and the error shows its output).
    pub fn run(&self, arguments: &[&str]) -> Result<Finished> {
        self.start(arguments)?.wait(wait::LONG * 2)
    }

    /// Runs a command to its end, and wants success.
    ///
    /// # Errors
    /// As [`run`](Self::run), and for every exit code but 0.
    pub fn succeed(&self, arguments: &[&str]) -> Result<Finished> {
        let finished = self.run(arguments)?;
        if finished.code == Some(0) { Ok(finished) } else { Err(format!("pgveil {arguments:?}: {finished}").into()) }
    }

    /// Starts a command in the background. Dropping the result kills it.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&self, arguments: &[&str]) -> Result<Running> {
        self.start_with(arguments, &[])
    }

    /// [`start`](Self::start), with variables for this run alone.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start_with(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Result<Running> {
        let mut command = Command::new(binary()?);
        command
            .arg("--config")
            .arg(self.path())
            .args(arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .envs(environment.iter().copied());
        Running::spawn(command)
    }
}

/// A text as YAML writes it between double quotes; JSON's escapes are YAML's too.
fn yaml_text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// A program in the background, its output being collected.
#[derive(Debug)]
pub struct Running {
    process: Child,
    output: Vec<Collector>,
}

#[derive(Debug)]
struct Collector {
    text: Arc<Mutex<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
}

impl Collector {
    fn of(stream: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(Vec::new()));
        let for_thread = Arc::clone(&text);
        let thread = thread::spawn(move || {
            let mut lines = BufReader::new(stream);
            let mut line = Vec::new();
            while matches!(lines.read_until(b'\n', &mut line), Ok(1..)) {
                for_thread.lock().unwrap_or_else(PoisonError::into_inner).append(&mut line);
            }
        });
        Self { text, thread: Some(thread) }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.text.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    fn all(&mut self) -> String {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.so_far()
    }
}

impl Running {
    /// Starts any command with its output collected and without input.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn spawn(mut command: Command) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut process =
            command.spawn().map_err(|error| format!("{}: {error}", command.get_program().to_string_lossy()))?;
        let stdout = Collector::of(process.stdout.take().ok_or("no standard output")?);
        let stderr = Collector::of(process.stderr.take().ok_or("no standard error")?);
        Ok(Self { process, output: vec![stdout, stderr] })
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// What it has written so far, to standard output and standard error, whole lines only.
    #[must_use]
    pub fn output(&self) -> String {
        self.output.iter().map(Collector::so_far).collect()
    }

    /// Waits until a line of either stream contains `text`.
    ///
    /// # Errors
    /// It ends before, or `limit` passes.
    pub fn wait_for_output(&mut self, text: &str, limit: Duration) -> Result<()> {
        let outcome = wait::until(&format!("output with {text:?}"), limit, || {
            let ended = self.process.try_wait()?;
            match (self.output().contains(text), ended) {
                (true, _) => Ok(Some(())),
                (false, Some(status)) => Err(format!("it ended ({status}) before it wrote {text:?}").into()),
                (false, None) => Ok(None),
            }
        });
        outcome.map_err(|error| format!("{error}\n{}", self.output()).into())
    }

    /// Whether it still runs.
    ///
    /// # Errors
    /// The process cannot be asked.
    pub fn is_running(&mut self) -> Result<bool> {
        Ok(self.process.try_wait()?.is_none())
    }

    /// Sends it a signal by its name, such as `TERM`, `INT`, `STOP` or `CONT`.
    ///
    /// # Errors
    /// It is gone.
    pub fn signal(&self, name: &str) -> Result<()> {
        signal(self.process.id(), name)
    }

    /// `SIGTERM`, and the orderly end that must follow within a minute.
    ///
    /// # Errors
    /// It does not end.
    pub fn terminate(self) -> Result<Finished> {
        self.signal("TERM")?;
        self.wait(wait::LONG)
    }

    /// `SIGKILL`, and its end.
    ///
    /// # Errors
    /// It does not end.
    pub fn kill(mut self) -> Result<Finished> {
        self.process.kill()?;
        self.wait(wait::LONG)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It has not ended after `limit`: it is killed, and the error shows its output.
    pub fn wait(mut self, limit: Duration) -> Result<Finished> {
        match wait::until("a program to end", limit, || Ok(self.process.try_wait()?)) {
            Ok(status) => Ok(Finished::new(status, &mut self.output)),
            Err(error) => {
                let _ = self.process.kill();
                let status = self.process.wait()?;
                Err(format!("{error}\n{}", Finished::new(status, &mut self.output)).into())
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.process.try_wait(), Ok(None)) {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}

/// A program that has ended.
#[derive(Debug)]
pub struct Finished {
    /// The exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// The number of the signal that ended it.
    pub signal: Option<i32>,
    /// All of its standard output.
    pub stdout: String,
    /// All of its standard error.
    pub stderr: String,
}

impl Finished {
    fn new(status: ExitStatus, output: &mut [Collector]) -> Self {
        let mut texts = output.iter_mut().map(Collector::all);
        let (stdout, stderr) = (texts.next().unwrap_or_default(), texts.next().unwrap_or_default());
        Self { code: status.code(), signal: status.signal(), stdout, stderr }
    }
}

impl fmt::Display for Finished {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => writeln!(formatter, "exit code {code}")?,
            (None, Some(signal)) => writeln!(formatter, "ended by signal {signal}")?,
            (None, None) => writeln!(formatter, "ended in an unknown way")?,
        }
        write!(formatter, "--- standard output\n{}--- standard error\n{}", self.stdout, self.stderr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Running {
        let mut command = Command::new("sh");
        command.arg("-c").arg(script);
        Running::spawn(command).unwrap()
    }

    #[test]
    fn names_are_quoted_for_yaml() {
        assert_eq!(yaml_text("a\"b\\c\nd e\u{301}"), "\"a\\\"b\\\\c\\u000ad e\u{301}\"");
    }

    #[test]
    fn output_and_exit_code_are_collected() {
        let finished = shell("echo out; echo err >&2; exit 3").wait(wait::LONG).unwrap();
        assert_eq!((finished.code, finished.signal), (Some(3), None));
        assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("out\n", "err\n"));
    }

    #[test]
    fn a_program_in_the_background_is_waited_for_and_signalled() {
        let mut running = shell("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done");
        running.wait_for_output("ready", wait::LONG).unwrap();
        assert!(running.is_running().unwrap());
        let finished = running.terminate().unwrap();
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(0), "ready\nbye\n"));
        assert_eq!(shell("exec sleep 60").kill().unwrap().signal, Some(9));
    }

    #[test]
    fn a_program_that_never_ends_is_killed_and_its_output_shown() {
        let error = shell("echo stuck; exec sleep 60").wait(Duration::from_millis(200)).unwrap_err().to_string();
        assert!(error.contains("stuck") && error.contains("signal 9"), "{error}");
        let error = shell("echo short").wait_for_output("long", wait::LONG).unwrap_err().to_string();
        assert!(error.contains("before it wrote \"long\""), "{error}");
    }
}
