//! The certificates of a fleet: one authority, a certificate for each NATS server and one for each role.

use crate::roles::{FleetRole, authorization};
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

/// What the servers include in their configuration.
const AUTHORIZATION_FILE: &str = "authorization.conf";
const AUTHORITY_KEY_FILE: &str = "ca.key.pem";
/// How long certificates are valid.
const YEARS_VALID: i32 = 10;
const SECONDS_OF_A_YEAR: u64 = 31_556_952;

#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
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
    #[error("cannot make a certificate")]
    Certificate(#[from] rcgen::Error),
}

/// Writes what is missing in a directory of certificates and returns the directories that are new:
/// `authority` (stays with the operator), `servers/NAME` for each server, and one for each role. An authority
/// that is there is used again, so that a server can be added later.
pub fn write_certificates(
    directory: &Path,
    servers: &[String],
    cell: &str,
) -> Result<Vec<PathBuf>, CertificateError> {
    let mut written = Vec::new();
    let authority = CertificateAuthority::open(&directory.join("authority"), &mut written)?;
    for server in servers {
        let place = directory.join("servers").join(server);
        // Servers are clients of each other.
        let purposes = [ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        authority.issue(&place, server, &purposes, &mut written)?;
        write(&place.join(AUTHORIZATION_FILE), &authorization(cell))?;
    }
    for role in FleetRole::ALL {
        let purposes = [ExtendedKeyUsagePurpose::ClientAuth];
        let name = role.certificate_name();
        authority.issue(&directory.join(role.name()), &name, &purposes, &mut written)?;
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
    ) -> Result<CertificateAuthority, CertificateError> {
        let (certificate, key) =
            (directory.join(AUTHORITY_FILE), directory.join(AUTHORITY_KEY_FILE));
        let params = CertificateAuthority::params()?;
        if key.exists() {
            let key = KeyPair::from_pem(&read(&key)?)?;
            let pem = read(&certificate)?;
            return Ok(CertificateAuthority { pem, issuer: Issuer::new(params, key) });
        }
        let pair = KeyPair::generate()?;
        let pem = params.self_signed(&pair)?.pem();
        write(&key, &pair.serialize_pem())?;
        write(&certificate, &pem)?;
        written.push(directory.to_owned());
        Ok(CertificateAuthority { pem, issuer: Issuer::new(params, pair) })
    }

    fn params() -> Result<CertificateParams, CertificateError> {
        let mut params = params("Jackfield fleet", Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        Ok(params)
    }

    /// Writes certificate, key and authority for one name, if they are not there.
    fn issue(
        &self,
        directory: &Path,
        name: &str,
        purposes: &[ExtendedKeyUsagePurpose],
        written: &mut Vec<PathBuf>,
    ) -> Result<(), CertificateError> {
        if directory.join(CERTIFICATE_FILE).exists() {
            return Ok(());
        }
        let mut params = params(name, vec![name.to_owned()])?;
        params.extended_key_usages = purposes.to_vec();
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        write(&directory.join(KEY_FILE), &key.serialize_pem())?;
        write(&directory.join(AUTHORITY_FILE), &self.pem)?;
        // Last: a directory that has it is complete.
        write(&directory.join(CERTIFICATE_FILE), &certificate.pem())?;
        written.push(directory.to_owned());
        Ok(())
    }
}

fn params(name: &str, names: Vec<String>) -> Result<CertificateParams, CertificateError> {
    let mut params = CertificateParams::new(names)?;
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    params.distinguished_name = subject;
    let year = this_year();
    params.not_before = date_time_ymd(year, 1, 1);
    params.not_after = date_time_ymd(year + YEARS_VALID, 1, 1);
    Ok(params)
}

/// Of the average length of a year: around the first of January it may be the one before, which is as good.
fn this_year() -> i32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    1970 + i32::try_from(since.as_secs() / SECONDS_OF_A_YEAR).expect("a few hundred years")
}

fn write(path: &Path, text: &str) -> Result<(), CertificateError> {
    let failed = |source| CertificateError::Write { path: path.to_owned(), source };
    let directory = path.parent().expect("a file in a directory");
    jackfield_private_files::create_dir(directory).map_err(failed)?;
    jackfield_private_files::write_file(path, text.as_bytes()).map_err(failed)
}

fn read(path: &Path) -> Result<String, CertificateError> {
    fs::read_to_string(path)
        .map_err(|source| CertificateError::Read { path: path.to_owned(), source })
}
