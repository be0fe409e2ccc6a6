//! The cryptography of a client: what AWS's servers and the usual proxies speak, all of it `ring`'s.
//!
//! `rustls` has the same and more ready to use: the ciphers of processors that have no AES, which Lambda's have, and
//! the keys of servers. What is never used is still in every archive, so it is left out here.

use std::sync::Arc;

use ring::rand::{SecureRandom as _, SystemRandom};
use rustls::crypto::ring::cipher_suite::{
    TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, TLS13_AES_128_GCM_SHA256,
    TLS13_AES_256_GCM_SHA384,
};
use rustls::crypto::ring::kx_group::{SECP256R1, SECP384R1, X25519};
use rustls::crypto::{CryptoProvider, GetRandomFailed, KeyProvider, SecureRandom, WebPkiSupportedAlgorithms};
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::SigningKey;
use rustls::{Error, SignatureScheme};
use webpki::ring as signature;

/// What signs certificates and handshakes. In the handshake of TLS 1.2 a scheme leaves the curve open.
pub(super) static SIGNATURES: WebPkiSupportedAlgorithms = WebPkiSupportedAlgorithms {
    all: &[
        signature::ECDSA_P256_SHA256,
        signature::ECDSA_P256_SHA384,
        signature::ECDSA_P384_SHA256,
        signature::ECDSA_P384_SHA384,
        signature::ED25519,
        signature::RSA_PSS_2048_8192_SHA256_LEGACY_KEY,
        signature::RSA_PSS_2048_8192_SHA384_LEGACY_KEY,
        signature::RSA_PSS_2048_8192_SHA512_LEGACY_KEY,
        signature::RSA_PKCS1_2048_8192_SHA256,
        signature::RSA_PKCS1_2048_8192_SHA384,
        signature::RSA_PKCS1_2048_8192_SHA512,
        // Some authorities leave out what the standard wants to be empty.
        signature::RSA_PKCS1_2048_8192_SHA256_ABSENT_PARAMS,
        signature::RSA_PKCS1_2048_8192_SHA384_ABSENT_PARAMS,
        signature::RSA_PKCS1_2048_8192_SHA512_ABSENT_PARAMS,
    ],
    mapping: &[
        (
            SignatureScheme::ECDSA_NISTP256_SHA256,
            &[signature::ECDSA_P256_SHA256, signature::ECDSA_P384_SHA256],
        ),
        (
            SignatureScheme::ECDSA_NISTP384_SHA384,
            &[signature::ECDSA_P384_SHA384, signature::ECDSA_P256_SHA384],
        ),
        (SignatureScheme::ED25519, &[signature::ED25519]),
        (SignatureScheme::RSA_PSS_SHA256, &[signature::RSA_PSS_2048_8192_SHA256_LEGACY_KEY]),
        (SignatureScheme::RSA_PSS_SHA384, &[signature::RSA_PSS_2048_8192_SHA384_LEGACY_KEY]),
        (SignatureScheme::RSA_PSS_SHA512, &[signature::RSA_PSS_2048_8192_SHA512_LEGACY_KEY]),
        (SignatureScheme::RSA_PKCS1_SHA256, &[signature::RSA_PKCS1_2048_8192_SHA256]),
        (SignatureScheme::RSA_PKCS1_SHA384, &[signature::RSA_PKCS1_2048_8192_SHA384]),
        (SignatureScheme::RSA_PKCS1_SHA512, &[signature::RSA_PKCS1_2048_8192_SHA512]),
    ],
};

/// The whole of it.
pub(super) fn provider() -> CryptoProvider {
    CryptoProvider {
        cipher_suites: vec![
            TLS13_AES_128_GCM_SHA256,
            TLS13_AES_256_GCM_SHA384,
            TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
            TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
            TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
            TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        ],
        kx_groups: vec![X25519, SECP256R1, SECP384R1],
        signature_verification_algorithms: SIGNATURES,
        secure_random: &System,
        key_provider: &System,
    }
}

#[derive(Debug)]
struct System;

impl SecureRandom for System {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), GetRandomFailed> {
        SystemRandom::new().fill(bytes).map_err(|_| GetRandomFailed)
    }
}

impl KeyProvider for System {
    /// A client without a certificate of its own has no key.
    fn load_private_key(&self, _: PrivateKeyDer<'static>) -> Result<Arc<dyn SigningKey>, Error> {
        Err(Error::General("this client has no keys".to_owned()))
    }
}
