//! The TLS certificate of an address.

use rustix::process::geteuid;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};

/// The PEM files of the certificate chain and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsCertificate {
    pub chain: PathBuf,
    pub key: PathBuf,
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsCertificateError {
    #[error("failed to read certificate or key `{}`", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{}` contains no {what}: use a PEM file with `-----BEGIN {tag}-----`", path.display())]
    Nothing { path: PathBuf, what: &'static str, tag: &'static str },
    #[error("`{}` is damaged", path.display())]
    Damaged {
        path: PathBuf,
        #[source]
        source: pem::Error,
    },
    #[error("key `{}` is accessible to others (mode {mode:o}): run `chmod 600`", path.display())]
    NotPrivate { path: PathBuf, mode: u32 },
    #[error(
        "the certificate in `{}` and the key in `{}` do not match: `cert` is the whole chain with the \
         server's certificate first, `key` is the key of that certificate",
        chain.display(), key.display()
    )]
    Unusable {
        chain: PathBuf,
        key: PathBuf,
        #[source]
        source: rustls::Error,
    },
}

impl TlsCertificate {
    /// Reads both files and creates an acceptor. The peer chooses one of `protocols` by ALPN; if
    /// the list is empty, ALPN is not used.
    pub fn load(&self, protocols: &[&[u8]]) -> Result<TlsAcceptor, TlsCertificateError> {
        let (chain, key) = (read_chain(&self.chain)?, read_key(&self.key)?);
        let unusable = |source| {
            let (chain, key) = (self.chain.clone(), self.key.clone());
            TlsCertificateError::Unusable { chain, key, source }
        };
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(unusable)?;
        config.alpn_protocols = protocols.iter().map(|it| it.to_vec()).collect();
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsCertificateError> {
    let (what, tag) = ("certificate", "CERTIFICATE");
    let bad = |error| certificate_error(path, what, tag, error);
    let chain = CertificateDer::pem_file_iter(path).map_err(bad)?;
    let chain: Vec<_> = chain.collect::<Result<_, _>>().map_err(bad)?;
    if chain.is_empty() {
        return Err(certificate_error(path, what, tag, pem::Error::NoItemsFound));
    }
    Ok(chain)
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsCertificateError> {
    let failed = |source| TlsCertificateError::Io { path: path.to_owned(), source };
    let metadata = path.metadata().map_err(failed)?;
    // The system's keys belong to root and may be readable by a group.
    let is_system_key = metadata.uid() == 0 && geteuid().as_raw() != 0;
    let forbidden_bits = if is_system_key { 0o027 } else { 0o077 };
    if metadata.mode() & forbidden_bits != 0 {
        let mode = metadata.mode() & 0o7777;
        return Err(TlsCertificateError::NotPrivate { path: path.to_owned(), mode });
    }
    let bad = |error| certificate_error(path, "private key", "PRIVATE KEY", error);
    PrivateKeyDer::from_pem_file(path).map_err(bad)
}

fn certificate_error(
    path: &Path,
    what: &'static str,
    tag: &'static str,
    error: pem::Error,
) -> TlsCertificateError {
    let path = path.to_owned();
    match error {
        pem::Error::Io(source) => TlsCertificateError::Io { path, source },
        pem::Error::NoItemsFound => TlsCertificateError::Nothing { path, what, tag },
        source => TlsCertificateError::Damaged { path, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    /// A folder with a matching `cert.pem` and `key.pem`.
    fn folder() -> (tempfile::TempDir, TlsCertificate) {
        let dir = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let certificate =
            TlsCertificate { chain: dir.path().join("cert.pem"), key: dir.path().join("key.pem") };
        fs::write(&certificate.chain, made.cert.pem()).unwrap();
        fs::write(&certificate.key, made.signing_key.serialize_pem()).unwrap();
        fs::set_permissions(&certificate.key, Permissions::from_mode(0o600)).unwrap();
        (dir, certificate)
    }

    fn why(certificate: &TlsCertificate) -> String {
        certificate.load(&[]).err().expect("it cannot be used").to_string()
    }

    #[test]
    fn chain_and_key_are_loaded() {
        let (_dir, certificate) = folder();
        let web = certificate.load(&[b"h2", b"http/1.1"]).unwrap();
        assert_eq!(web.config().alpn_protocols, [&b"h2"[..], b"http/1.1"]);
    }

    #[test]
    fn error_names_the_problem_and_the_fix() {
        let (_dir, certificate) = folder();
        let swapped =
            TlsCertificate { chain: certificate.key.clone(), key: certificate.chain.clone() };
        fs::set_permissions(&swapped.key, Permissions::from_mode(0o600)).unwrap();
        assert!(why(&swapped).contains("contains no certificate"), "{}", why(&swapped));
        let missing = TlsCertificate { key: "/nowhere/key.pem".into(), ..certificate.clone() };
        assert!(why(&missing).contains("`/nowhere/key.pem`"), "{}", why(&missing));
        let (_other_dir, other) = folder();
        let mixed = TlsCertificate { key: other.key, ..certificate.clone() };
        assert!(why(&mixed).contains("do not match"), "{}", why(&mixed));
        fs::write(&certificate.chain, "-----BEGIN CERTIFICATE-----\n?\n").unwrap();
        assert!(why(&certificate).contains("is damaged"), "{}", why(&certificate));
    }

    #[test]
    fn key_readable_by_others_is_refused() {
        let (_dir, certificate) = folder();
        fs::set_permissions(&certificate.key, Permissions::from_mode(0o644)).unwrap();
        let why = why(&certificate);
        assert!(why.contains("(mode 644)") && why.contains("chmod 600"), "{why}");
    }
}
