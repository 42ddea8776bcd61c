//! A certificate authority made for one cluster, by the `openssl` program.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{Result, account};

/// An authority with one server certificate, in files.
#[derive(Debug)]
pub struct Authority {
    folder: PathBuf,
}

impl Authority {
    /// Makes `tls/` under `home`: an authority, and a certificate for `localhost` and 127.0.0.1 signed by it.
    ///
    /// # Errors
    /// `openssl` is missing or fails.
    pub fn create(home: &Path) -> Result<Self> {
        let folder = home.join("tls");
        fs::create_dir_all(&folder)?;
        let authority = Self { folder };
        authority.openssl(&[
            "req",
            "-x509",
            "-nodes",
            "-days",
            "2",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-subj",
            "/CN=pgveil test authority",
            "-keyout",
            "ca.key",
            "-out",
            "ca.crt",
        ])?;
        authority.sign("server", "localhost", "subjectAltName=DNS:localhost,IP:127.0.0.1")?;
        // The server refuses a key that others can read.
        fs::set_permissions(authority.server_key(), fs::Permissions::from_mode(0o600))?;
        for file in [authority.server_certificate(), authority.server_key()] {
            account::give(&file)?;
        }
        Ok(authority)
    }

    /// Signs a client certificate for a role, and gives the paths of the certificate and its key.
    ///
    /// # Errors
    /// `openssl` fails.
    pub fn client(&self, role: &str) -> Result<(PathBuf, PathBuf)> {
        self.sign(role, role, "extendedKeyUsage=clientAuth")?;
        let key = self.folder.join(format!("{role}.key"));
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600))?;
        Ok((self.folder.join(format!("{role}.crt")), key))
    }

    /// The authority's certificate: what a client verifies against (`sslrootcert`).
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.folder.join("ca.crt")
    }

    pub(crate) fn server_certificate(&self) -> PathBuf {
        self.folder.join("server.crt")
    }

    pub(crate) fn server_key(&self) -> PathBuf {
        self.folder.join("server.key")
    }

    fn sign(&self, file: &str, name: &str, extension: &str) -> Result<()> {
        let (key, request, certificate) = (format!("{file}.key"), format!("{file}.csr"), format!("{file}.crt"));
        let extensions = format!("{file}.ext");
        fs::write(self.folder.join(&extensions), extension)?;
        self.openssl(&[
            "req",
            "-nodes",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-subj",
            &format!("/CN={name}"),
            "-keyout",
            &key,
            "-out",
            &request,
        ])?;
        self.openssl(&[
            "x509",
            "-req",
            "-days",
            "2",
            "-in",
            &request,
            "-CA",
            "ca.crt",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-extfile",
            &extensions,
            "-out",
            &certificate,
        ])
    }

    fn openssl(&self, arguments: &[&str]) -> Result<()> {
        let output = Command::new("openssl").args(arguments).current_dir(&self.folder).output();
        let output = output.map_err(|error| format!("openssl: {error}: install the package openssl"))?;
        if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into()) }
    }
}
