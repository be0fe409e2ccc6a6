use std::fmt::Write as _;

use aws_sdk_dynamodb::Client as DynamoDb;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Config, Credentials, Region};
use aws_sdk_dynamodb::error::DisplayErrorContext;
use rcgen::CertifiedKey;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::*;

/// A server on this machine with a self-signed certificate.
struct Server {
    endpoint: String,
    certificate: String,
}

impl Server {
    async fn start() -> Self {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
        let config =
            ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let config = config.with_single_cert(vec![cert.der().clone()], key).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let server = Self { endpoint, certificate: cert.pem() };
        let acceptor = TlsAcceptor::from(Arc::new(config));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    // A client that doesn't trust the certificate closes the connection.
                    if let Ok(mut stream) = acceptor.accept(stream).await {
                        let mut request = [0; 16 * 1024];
                        assert!(stream.read(&mut request).await.unwrap() > 0, "nothing was asked");
                        stream.write_all(answer().as_bytes()).await.unwrap();
                        stream.shutdown().await.unwrap();
                    }
                });
            }
        });
        server
    }

    fn trusted(&self) -> TrustStore {
        TrustStore::empty().with_pem_certificate(self.certificate.as_str())
    }

    fn dynamodb(&self, client: SharedHttpClient) -> DynamoDb {
        DynamoDb::from_conf(
            Config::builder()
                .behavior_version(BehaviorVersion::latest())
                .region(Region::new("eu-central-1"))
                .credentials_provider(Credentials::new("test", "test", None, None, "tests"))
                .endpoint_url(&self.endpoint)
                .retry_config(RetryConfig::disabled())
                .http_client(client)
                .build(),
        )
    }
}

/// An answer of a server whose clock is 30 s behind this machine's.
fn answer() -> String {
    let date = DateTime::from_secs(SystemClock.now().as_millis().div_euclid(1_000) - 30);
    let date = date.fmt(Format::HttpDate).unwrap();
    format!("HTTP/1.1 200 OK\r\ndate: {date}\r\ncontent-length: 25\r\n\r\n{{\"TableNames\":[\"orders\"]}}")
}

#[tokio::test]
async fn the_dates_of_answers_show_how_far_this_machines_clock_is_off() {
    let server = Server::start().await;
    let skew = Arc::new(Skew::default());
    let dynamodb = server.dynamodb(client(server.trusted(), ProxyConfig::disabled(), Arc::clone(&skew)));
    for _ in 0..3 {
        let tables = dynamodb.list_tables().send().await.unwrap();
        assert_eq!(tables.table_names(), ["orders"]);
        assert!((skew.offset_ms() + 30_000).abs() <= 1_000, "{}", skew.offset_ms());
    }
}

#[tokio::test]
async fn a_server_that_amazon_has_issued_no_certificate_for_is_refused() {
    let server = Server::start().await;
    for roots in [Roots::Fixed, Roots::System] {
        let client = client(roots.store(), ProxyConfig::disabled(), Arc::default());
        let error = server.dynamodb(client).list_tables().send().await.unwrap_err();
        let shown = DisplayErrorContext(&error).to_string();
        assert!(shown.contains("UnknownIssuer"), "{roots:?}: {shown}");
    }
}

#[test]
fn only_functions_that_talk_to_aws_itself_in_its_commercial_partition_have_fixed_roots() {
    let region = |region: &str| AwsEnvironment { region: Some(region.to_owned()), ..Default::default() };
    for commercial in ["eu-central-1", "us-east-1", "ap-southeast-7", "mx-central-1"] {
        assert_eq!(Roots::in_lambda(&region(commercial)), Roots::Fixed, "{commercial}");
        assert_eq!(Roots::outside_lambda(&region(commercial)), Roots::System, "{commercial}");
    }
    for other in ["us-gov-west-1", "cn-north-1", "us-iso-east-1", "eusc-de-east-1", ""] {
        assert_eq!(Roots::in_lambda(&region(other)), Roots::System, "{other}");
    }
    let at = |url: &str| AwsEnvironment { endpoint_url: Some(url.to_owned()), ..region("eu-central-1") };
    assert_eq!(Roots::in_lambda(&at("http://127.0.0.1:4566")), Roots::Fixed);
    assert_eq!(Roots::in_lambda(&at("https://dynamodb.internal")), Roots::System);
    let proxied = AwsEnvironment { proxy: true, ..region("eu-central-1") };
    assert_eq!(Roots::in_lambda(&proxied), Roots::System);
    let named = AwsEnvironment { own_certificates: true, ..region("eu-central-1") };
    assert_eq!([Roots::in_lambda(&named), Roots::outside_lambda(&named)], [Roots::Named; 2]);
}

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

/// A proxy for one connection. Returns its address, and a handle for the request that it got.
async fn proxy() -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut asked = vec![];
        while !asked.ends_with(b"\r\n\r\n") {
            asked.push(client.read_u8().await.unwrap());
        }
        let asked = String::from_utf8(asked).unwrap();
        let server = asked.split(' ').nth(1).unwrap().to_owned();
        let mut server = TcpStream::connect(server.replace("localhost", "127.0.0.1")).await.unwrap();
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        drop(copy_bidirectional(&mut client, &mut server).await);
        asked
    });
    (address, asked)
}

#[tokio::test]
async fn a_proxy_is_asked_for_a_tunnel_and_sees_no_more() {
    let server = Server::start().await;
    let (address, asked) = proxy().await;
    let proxies = ProxyConfig::https(address).unwrap().with_basic_auth("ada", "secret");
    let client = client(server.trusted(), proxies, Arc::default());
    let tables = server.dynamodb(client).list_tables().send().await.unwrap();
    assert_eq!(tables.table_names(), ["orders"]);
    let asked = asked.await.unwrap().to_ascii_lowercase();
    let host = server.endpoint.trim_start_matches("https://");
    assert!(asked.starts_with(&format!("connect {host} http/1.1\r\n")), "{asked}");
    assert!(asked.contains("proxy-authorization: basic "), "{asked}");
}
