//! Checks the certificates of the system, which every encrypted connection to a model server needs.

use super::{check_context::CheckContext, finding::DoctorFinding};
use jackfield_network_proxy::system_tls_config;
use jackfield_protocol::chain;

pub(super) fn check_tls(_context: &CheckContext<'_>) -> Vec<DoctorFinding> {
    vec![match system_tls_config() {
        Ok(_) => DoctorFinding::ok("certificates for encrypted connections are installed"),
        Err(error) => DoctorFinding::warning(
            format!("no encrypted connection works: {}", chain(&error)),
            "install the package `ca-certificates`, or set SSL_CERT_FILE",
        ),
    }]
}
