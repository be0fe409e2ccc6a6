//! Whose certificates count.
//!
//! To read all that the system trusts is to read more than a hundred files, which took longer than the rest of a
//! function's start. Nearly every server we talk to is Amazon's, so Amazon's five roots are known by heart, and the
//! system is asked only once a server turns up whose certificate none of them issued: one of a partition with other
//! roots, a proxy that looks into connections, a private endpoint. Whoever says with `SSL_CERT_FILE` or `SSL_CERT_DIR`
//! which certificates count means these alone.

use std::sync::{Arc, LazyLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::crypto::{self, SIGNATURES};

/// The roots of Amazon Trust Services, all five as they recommend:
/// <https://www.amazontrust.com/repository/>.
pub(super) const AMAZON_ROOTS: &str = include_str!("amazon_roots.pem");

/// TLS as every client has it.
pub(super) fn config() -> ClientConfig {
    knowing(if is_told() { "" } else { AMAZON_ROOTS }, system)
}

#[expect(clippy::disallowed_methods, reason = "where certificates are is no configuration of the service")]
fn is_told() -> bool {
    ["SSL_CERT_FILE", "SSL_CERT_DIR"].into_iter().any(|name| std::env::var_os(name).is_some())
}

/// TLS where some issuers are known by heart, and the others are read when they're needed.
pub(super) fn knowing(known: &str, system: fn() -> RootCertStore) -> ClientConfig {
    let trust = Trust {
        known: store(CertificateDer::pem_slice_iter(known.as_bytes()).flatten()),
        system: LazyLock::new(system),
    };
    let builder = ClientConfig::builder_with_provider(Arc::new(crypto::provider()));
    #[expect(clippy::expect_used, reason = "it fails if a provider has no ciphers, and this one has")]
    let builder = builder.with_safe_default_protocol_versions().expect("there are ciphers for every version");
    builder.dangerous().with_custom_certificate_verifier(Arc::new(trust)).with_no_client_auth()
}

/// Whom the system trusts.
fn system() -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "certificates of the system can't be read");
    }
    store(found.certs)
}

/// Those of these certificates that can be used: the system may have some that are too old for it.
fn store(certificates: impl IntoIterator<Item = CertificateDer<'static>>) -> RootCertStore {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(certificates);
    store
}

/// Decides as `rustls` does by itself, but with two stores of roots: the second is read when the first won't do.
#[derive(Debug)]
struct Trust {
    known: RootCertStore,
    system: LazyLock<RootCertStore>,
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let certificate = ParsedCertificate::try_from(certificate)?;
        let by = |roots| {
            verify_server_cert_signed_by_trust_anchor(&certificate, roots, intermediates, now, SIGNATURES.all)
        };
        // Whatever was wrong: another path may lead from the same certificates to a root of the system's.
        by(&self.known).or_else(|_| by(&self.system))?;
        verify_server_name(&certificate, name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &SIGNATURES)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &SIGNATURES)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        SIGNATURES.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use sha2::{Digest as _, Sha256};

    use super::*;

    #[test]
    fn the_five_roots_of_amazon_are_known_and_no_other() {
        let roots = CertificateDer::pem_slice_iter(AMAZON_ROOTS.as_bytes());
        let fingerprints: Vec<_> = roots.map(|root| hex(&Sha256::digest(root.unwrap()))).collect();
        // Amazon Root CA 1 to 4, Starfield Services Root Certificate Authority - G2.
        assert_eq!(
            fingerprints,
            [
                "8ecde6884f3d87b1125ba31ac3fcb13d7016de7f57cc904fe1cb97c6ae98196e",
                "1ba5b2aa8c65401a82960118f80bec4f62304d83cec4713a19c39c011ea46db4",
                "18ce6cfe7bf14e60b2e347b8dfe868cb31d02ebb3ada271569f50343b46db3a4",
                "e35d28419ed02025cfa69038cd623962458da5c695fbdea3c22b0bfb25897092",
                "568d6905a2c88708a4b3025190edcfedb1974a606a13c6e5290fcb2ae63edab5",
            ]
        );
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").unwrap();
            text
        })
    }
}
