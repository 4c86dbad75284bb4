//! Creates the certificates of a fleet: one authority, a certificate for each NATS server and one
//! for each role.

use crate::roles::{FleetRole, format_authorization};
use jackfield_nats_access::{AUTHORITY_FILE, CERTIFICATE_FILE, KEY_FILE};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

/// The servers include this file in their configuration.
const AUTHORIZATION_FILE: &str = "authorization.conf";
const AUTHORITY_KEY_FILE: &str = "ca.key.pem";
/// The validity of certificates.
const VALIDITY_YEARS: i32 = 10;
const SECONDS_PER_YEAR: u64 = 31_556_952;

#[derive(Debug, thiserror::Error)]
pub enum CertificateIssueError {
    #[error("cannot write `{}`", .path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot read `{}`", .path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot create a certificate")]
    Certificate(#[from] rcgen::Error),
}

/// Writes the missing certificates of a directory and returns the new subdirectories: `authority`
/// (stays with the operator), `servers/NAME` for each server, and one for each role. An existing
/// authority is used again, so that a server can be added later.
pub fn write_certificates(
    directory: &Path,
    servers: &[String],
    cell: &str,
) -> Result<Vec<PathBuf>, CertificateIssueError> {
    let mut written = Vec::new();
    let authority = CertificateAuthority::open(&directory.join("authority"), &mut written)?;
    for server in servers {
        let server_directory = directory.join("servers").join(server);
        // Servers are also clients of each other.
        let purposes = [ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        authority.issue_certificate(&server_directory, server, &purposes, &mut written)?;
        write_file(&server_directory.join(AUTHORIZATION_FILE), &format_authorization(cell))?;
    }
    for role in FleetRole::ALL {
        let purposes = [ExtendedKeyUsagePurpose::ClientAuth];
        let name = role.certificate_name();
        authority.issue_certificate(
            &directory.join(role.name()),
            &name,
            &purposes,
            &mut written,
        )?;
    }
    Ok(written)
}

struct CertificateAuthority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl CertificateAuthority {
    fn open(
        directory: &Path,
        written: &mut Vec<PathBuf>,
    ) -> Result<CertificateAuthority, CertificateIssueError> {
        let (certificate, key) =
            (directory.join(AUTHORITY_FILE), directory.join(AUTHORITY_KEY_FILE));
        let params = CertificateAuthority::create_params()?;
        if key.exists() {
            let key = KeyPair::from_pem(&read_file(&key)?)?;
            let pem = read_file(&certificate)?;
            return Ok(CertificateAuthority { pem, issuer: Issuer::new(params, key) });
        }
        let pair = KeyPair::generate()?;
        let pem = params.self_signed(&pair)?.pem();
        write_file(&key, &pair.serialize_pem())?;
        write_file(&certificate, &pem)?;
        written.push(directory.to_owned());
        Ok(CertificateAuthority { pem, issuer: Issuer::new(params, pair) })
    }

    fn create_params() -> Result<CertificateParams, CertificateIssueError> {
        let mut params = create_params("Jackfield fleet", Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        Ok(params)
    }

    /// Writes certificate, key and authority for one name, unless they exist.
    fn issue_certificate(
        &self,
        directory: &Path,
        name: &str,
        purposes: &[ExtendedKeyUsagePurpose],
        written: &mut Vec<PathBuf>,
    ) -> Result<(), CertificateIssueError> {
        if directory.join(CERTIFICATE_FILE).exists() {
            return Ok(());
        }
        let mut params = create_params(name, vec![name.to_owned()])?;
        params.extended_key_usages = purposes.to_vec();
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        write_file(&directory.join(KEY_FILE), &key.serialize_pem())?;
        write_file(&directory.join(AUTHORITY_FILE), &self.pem)?;
        // The certificate is written last: a directory that contains it is complete.
        write_file(&directory.join(CERTIFICATE_FILE), &certificate.pem())?;
        written.push(directory.to_owned());
        Ok(())
    }
}

fn create_params(
    name: &str,
    names: Vec<String>,
) -> Result<CertificateParams, CertificateIssueError> {
    let mut params = CertificateParams::new(names)?;
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    params.distinguished_name = subject;
    let year = current_year();
    params.not_before = date_time_ymd(year, 1, 1);
    params.not_after = date_time_ymd(year + VALIDITY_YEARS, 1, 1);
    Ok(params)
}

/// Computed with the average length of a year. Around the first of January it may return the
/// previous year, which is good enough.
fn current_year() -> i32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    1970 + i32::try_from(since.as_secs() / SECONDS_PER_YEAR).expect("the year is a small number")
}

fn write_file(path: &Path, text: &str) -> Result<(), CertificateIssueError> {
    let failed = |source| CertificateIssueError::Write { path: path.to_owned(), source };
    let directory = path.parent().expect("a file in a directory");
    jackfield_private_files::create_dir(directory).map_err(failed)?;
    jackfield_private_files::write_file(path, text.as_bytes()).map_err(failed)
}

fn read_file(path: &Path) -> Result<String, CertificateIssueError> {
    fs::read_to_string(path)
        .map_err(|source| CertificateIssueError::Read { path: path.to_owned(), source })
}
