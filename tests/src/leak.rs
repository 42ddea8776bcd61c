//! Where in the files of a folder given byte strings occur: in tables, indexes, WAL, logs and temporary files alike.

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

use aho_corasick::AhoCorasick;

use crate::Result;

/// Bytes read at a time.
const PIECE_BYTES: usize = 1 << 20;

/// The strings that must not be found.
///
/// Keep canaries short of 100 bytes or so, and of no pattern: PostgreSQL compresses values from about 2 kB on, and then no
/// search finds them. For the same reason `wal_compression` stays off, its default.
#[derive(Debug)]
pub struct Canaries {
    patterns: Vec<Vec<u8>>,
    automaton: AhoCorasick,
}

/// One occurrence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leak {
    /// The file.
    pub file: PathBuf,
    /// The offset of its first byte there.
    pub offset: u64,
    /// The canary, as it was written (or its hex form).
    pub canary: String,
}

impl Canaries {
    /// Looks for these strings, and for each in hex, as `bytea` and logs of bytes write it.
    ///
    /// # Errors
    /// A string is shorter than six bytes (it would be found by chance), or there are too many.
    pub fn new(canaries: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Result<Self> {
        let mut patterns = Vec::new();
        for canary in canaries {
            let canary = canary.as_ref();
            if canary.len() < 6 {
                return Err(format!("a canary of {} bytes would be found by chance", canary.len()).into());
            }
            patterns.push(canary.to_vec());
            patterns.push(canary.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect());
        }
        let automaton = AhoCorasick::new(&patterns)?;
        Ok(Self { patterns, automaton })
    }

    /// All occurrences in one text or byte string, such as a log that was captured.
    #[must_use]
    pub fn in_bytes(&self, name: &str, bytes: &[u8]) -> Vec<Leak> {
        self.in_piece(Path::new(name), bytes, 0)
    }

    /// All occurrences in the files under a folder, or in one file. Files that vanish meanwhile hold nothing.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn under(&self, path: &Path) -> Result<Vec<Leak>> {
        let mut leaks = Vec::new();
        let mut pending = vec![path.to_path_buf()];
        while let Some(path) = pending.pop() {
            let Ok(kind) = fs::symlink_metadata(&path) else { continue };
            if kind.is_dir() {
                for entry in fs::read_dir(&path)? {
                    pending.push(entry?.path());
                }
            } else if kind.is_file() {
                match File::open(&path) {
                    Ok(file) => self.in_stream(&path, file, &mut leaks)?,
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    Err(error) => return Err(format!("{}: {error}", path.display()).into()),
                }
            }
        }
        Ok(leaks)
    }

    fn in_stream(&self, name: &Path, mut stream: impl Read, leaks: &mut Vec<Leak>) -> Result<()> {
        let overlap = self.patterns.iter().map(Vec::len).max().unwrap_or(1) - 1;
        let mut window: Vec<u8> = Vec::with_capacity(PIECE_BYTES + overlap);
        let mut window_offset = 0;
        loop {
            let kept = window.len();
            let read = stream.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut window)?;
            if read == 0 {
                return Ok(());
            }
            // What ends in the part that was kept has been reported with the piece before.
            let found = self.in_piece(name, &window, window_offset);
            let fresh = window_offset + kept as u64;
            leaks.extend(found.into_iter().filter(|leak| leak.offset + leak.canary.len() as u64 > fresh));
            let drained = window.len().saturating_sub(overlap);
            window.drain(..drained);
            window_offset += drained as u64;
        }
    }

    fn in_piece(&self, file: &Path, bytes: &[u8], offset: u64) -> Vec<Leak> {
        let found = self.automaton.find_overlapping_iter(bytes).map(|found| Leak {
            file: file.to_path_buf(),
            offset: offset + found.start() as u64,
            canary: String::from_utf8_lossy(&self.patterns[found.pattern().as_usize()]).into_owned(),
        });
        found.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canary_is_found_once_wherever_it_lies_even_across_two_pieces() -> Result<()> {
        let folder = tempfile::tempdir()?;
        fs::create_dir(folder.path().join("deep"))?;
        for offset in [0, 17, PIECE_BYTES - 6, PIECE_BYTES - 1, PIECE_BYTES, 2 * PIECE_BYTES - 3] {
            let mut bytes = vec![b'.'; offset];
            bytes.extend_from_slice(b"canary-0001");
            let file = folder.path().join("deep/file");
            fs::write(&file, &bytes)?;
            let leaks = Canaries::new(["canary-0001", "canary-0002"])?.under(folder.path())?;
            assert_eq!(leaks, [Leak { file, offset: offset as u64, canary: "canary-0001".into() }]);
        }
        Ok(())
    }

    #[test]
    fn hex_is_found_too_and_short_canaries_are_refused() -> Result<()> {
        let canaries = Canaries::new(["secret!"])?;
        assert_eq!(canaries.in_bytes("log", b"x=\\x73656372657421").len(), 1);
        assert!(canaries.in_bytes("log", b"secret").is_empty());
        assert!(Canaries::new(["short"]).is_err());
        Ok(())
    }
}
