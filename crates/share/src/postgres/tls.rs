//! TLS to a database beyond this machine: which certificates are trusted, by the address of the database.

use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use sidenote_base::error::{Error, Result};
use sidenote_http_client::authorities;
use tokio_postgres_rustls::MakeRustlsConnect;

/// The modes of libpq that check the certificate. TLS here always does, so they mean no more than `require`.
const CHECKING_MODES: [&str; 2] = ["verify-ca", "verify-full"];

/// Removes the options that the driver does not know from an address: the file with the certificates of authorities,
/// and modes that check the certificate. Returns the address for the driver, and the file.
pub(super) fn split_address(address: &str) -> (String, Option<PathBuf>) {
    let Some((place, parameters)) = address.split_once('?') else { return (address.to_owned(), None) };
    let mut roots = None;
    let mut known: Vec<String> = Vec::new();
    for parameter in parameters.split('&') {
        match parameter.split_once('=') {
            Some(("sslrootcert", file)) => {
                roots = Some(PathBuf::from(percent_decode_str(file).decode_utf8_lossy().into_owned()));
            }
            Some(("sslmode", mode)) if CHECKING_MODES.contains(&mode) => {
                known.push("sslmode=require".to_owned());
            }
            _ => known.push(parameter.to_owned()),
        }
    }
    let mark = if known.is_empty() { "" } else { "?" };
    (format!("{place}{mark}{}", known.join("&")), roots)
}

/// Makes the connector, which trusts the authorities of a file, or those that browsers and this system trust.
///
/// # Errors
/// `NotFound` or `Io` if the file cannot be read; `Invalid` if it has no certificate.
pub(super) fn connector(roots: Option<&Path>) -> Result<MakeRustlsConnect> {
    let mut store = RootCertStore::empty();
    let Some(file) = roots else {
        // One that cannot be parsed, as some systems have, is not trusted.
        store.add_parsable_certificates(authorities().map(CertificateDer::from));
        return Ok(with_roots(store));
    };
    let pem = std::fs::read(file).map_err(|error| {
        Error::io("read the certificates in", file, error)
            .with_hint("correct sslrootcert in the address of the database")
    })?;
    let hint = "sslrootcert must name a file with certificates in PEM form";
    let found = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>().map_err(|error| {
        Error::invalid(format!("{} has a certificate that cannot be read: {error}", file.display()))
            .with_hint(hint)
    })?;
    let (added, _) = store.add_parsable_certificates(found);
    if added == 0 {
        let none = format!("{} has no certificate of an authority", file.display());
        return Err(Error::invalid(none).with_hint(hint));
    }
    Ok(with_roots(store))
}

fn with_roots(store: RootCertStore) -> MakeRustlsConnect {
    MakeRustlsConnect::new(ClientConfig::builder().with_root_certificates(store).with_no_client_auth())
}
