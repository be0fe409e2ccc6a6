//! Whose certificates a function accepts.

use std::io::Write as _;
use std::sync::Arc;

use rcgen::CertifiedKey;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::PrivateKeyDer;
use serde_json::json;
use tempfile::NamedTempFile;
use tickover_tests::emulator::judge;
use tickover_tests::runtime_api::Function;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::deployment::Deployment;

/// The emulator behind TLS, as at a private endpoint: its certificate wasn't issued by a public authority.
struct PrivateEndpoint {
    url: String,
    certificate: NamedTempFile,
}

impl PrivateEndpoint {
    async fn start() -> Self {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let mut certificate = NamedTempFile::new().unwrap();
        certificate.write_all(cert.pem().as_bytes()).unwrap();
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let config = config.with_single_cert(vec![cert.der().clone()], key).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    // A client that doesn't trust the certificate closes the connection.
                    let Ok(mut outside) = acceptor.accept(stream).await else { return };
                    let emulator = judge();
                    let address = emulator.trim_start_matches("http://");
                    let mut inside = TcpStream::connect(address).await.unwrap();
                    drop(copy_bidirectional(&mut outside, &mut inside).await);
                });
            }
        });
        Self { url, certificate }
    }
}

#[tokio::test]
async fn a_private_endpoint_is_trusted_where_the_system_trusts_its_certificate_and_nowhere_else() {
    let deployment = Deployment::new().await;
    let private = PrivateEndpoint::start().await;
    let environment = deployment.environment("schedule", &private.url);
    let mut environment: Vec<_> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let task = json!({"queue": "emails", "kind": "send-email"});

    let wary = Function::start("tickover-schedule", &environment).await.unwrap();
    let error = wary.invoke(task.clone()).await.unwrap_err();
    assert_eq!(error.error_type, "unavailable", "{error}");
    assert!(wary.logs().contains("UnknownIssuer"), "{}", wary.logs());

    environment.push(("SSL_CERT_FILE", private.certificate.path().to_str().unwrap()));
    let told = Function::start("tickover-schedule", &environment).await.unwrap();
    let scheduled = told.invoke(task).await.unwrap();
    assert_eq!(scheduled["task"]["status"], "pending", "{scheduled}");
}
