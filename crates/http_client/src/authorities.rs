//! The authorities whose certificates are trusted: those that browsers trust, which are part of the program, and those of this
//! system. The only user of `rustls-native-certs` and `webpki-root-certs`.

use std::sync::OnceLock;

use webpki_root_certs::TLS_SERVER_ROOT_CERTS;

/// Lists the certificates of all trusted authorities in DER form. Those of the system are read once: its store, or the file and
/// folder that the variables `SSL_CERT_FILE` and `SSL_CERT_DIR` name in place of it.
pub fn authorities() -> impl Iterator<Item = &'static [u8]> {
    static OF_SYSTEM: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    let of_system = OF_SYSTEM.get_or_init(|| {
        let loaded = rustls_native_certs::load_native_certs();
        for error in loaded.errors {
            tracing::warn!("some certificates of authorities of this system are not trusted: {error}");
        }
        loaded.certs.iter().map(|certificate| certificate.to_vec()).collect()
    });
    let built_in = TLS_SERVER_ROOT_CERTS.iter().map(|certificate| certificate.as_ref());
    built_in.chain(of_system.iter().map(Vec::as_slice))
}
