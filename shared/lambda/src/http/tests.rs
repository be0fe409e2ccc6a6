use std::sync::Arc;

use aws_sdk_dynamodb::Client as DynamoDb;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Config, Credentials, Region};
use aws_sdk_dynamodb::error::SdkError;
use hyper_util::client::proxy::matcher::Matcher;
use rcgen::CertifiedKey;
use rustls::pki_types::PrivateKeyDer;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::*;

/// A server on this machine whose certificate nobody but itself has issued.
struct Server {
    endpoint: String,
    certificate: String,
}

impl Server {
    async fn start(name: &str) -> Self {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
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
                    // Who doesn't trust us hangs up.
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

/// An answer of a server by whose time this machine is 30 s ahead.
fn answer() -> String {
    let date = DateTime::from_secs(SystemClock.now().as_millis().div_euclid(1_000) - 30);
    let date = date.fmt(Format::HttpDate).unwrap();
    format!("HTTP/1.1 200 OK\r\ndate: {date}\r\ncontent-length: 25\r\n\r\n{{\"TableNames\":[\"orders\"]}}")
}

fn plain(tls: ClientConfig, route: Route) -> SharedHttpClient {
    client(tls, route, &Arc::default())
}

fn direct() -> Route {
    Route::through(Matcher::builder().build())
}

fn nobody() -> RootCertStore {
    RootCertStore::empty()
}

fn is_refused<E>(error: &SdkError<E>) -> bool {
    let SdkError::DispatchFailure(failure) = error else { return false };
    let unknown = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
    failure.as_connector_error().is_some_and(|error| {
        error.is_io() && causes(error).any(|cause| cause.downcast_ref() == Some(&unknown))
    })
}

#[tokio::test]
async fn a_server_whose_issuer_is_known_is_talked_to_without_a_look_at_the_system() {
    let server = Server::start("localhost").await;
    let unread = || panic!("the system's certificates are read");
    let dynamodb = server.dynamodb(plain(trust::knowing(&server.certificate, unread), direct()));
    for _ in 0..2 {
        let tables = dynamodb.list_tables().send().await.unwrap();
        assert_eq!(tables.table_names(), ["orders"]);
    }
}

#[tokio::test]
async fn the_dates_of_answers_show_how_far_this_machines_clock_is_off() {
    let server = Server::start("localhost").await;
    let skew = Arc::new(Skew::default());
    let dynamodb = server.dynamodb(client(trust::knowing(&server.certificate, nobody), direct(), &skew));
    for _ in 0..3 {
        dynamodb.list_tables().send().await.unwrap();
        assert!((skew.offset_ms() + 30_000).abs() <= 1_000, "{}", skew.offset_ms());
    }
}

#[tokio::test]
async fn a_server_whose_issuer_nobody_knows_is_refused() {
    let server = Server::start("localhost").await;
    for client in
        [plain(trust::config(), direct()), plain(trust::knowing(trust::AMAZON_ROOTS, nobody), direct())]
    {
        let error = server.dynamodb(client).list_tables().send().await.unwrap_err();
        assert!(is_refused(&error), "{error:?}");
    }
}

#[tokio::test]
async fn a_certificate_counts_for_the_names_in_it_and_for_no_others() {
    let server = Server::start("elsewhere.example").await;
    let client = plain(trust::knowing(&server.certificate, nobody), direct());
    let error = server.dynamodb(client).list_tables().send().await.unwrap_err();
    assert!(!is_refused(&error) && format!("{error:?}").contains("NotValidForName"), "{error:?}");
}

#[tokio::test]
async fn a_connection_that_breaks_off_or_never_came_about_is_worth_another_attempt() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            // Not a word in return.
            assert!(stream.read(&mut [0; 1024]).await.unwrap() > 0, "nothing was asked");
        }
    });
    assert!(failure_of(format!("http://{address}/")).await.is_io());
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    assert!(failure_of(format!("http://{closed}/")).await.is_io());
}

#[tokio::test]
async fn a_server_that_says_nothing_to_a_handshake_isnt_waited_for() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    assert!(failure_of(format!("https://{address}/")).await.is_timeout());
}

async fn failure_of(uri: String) -> ConnectorError {
    let client = hyper_client(trust::config(), direct(), Duration::from_millis(100));
    let mut request = HttpRequest::new(SdkBody::empty());
    request.set_uri(uri).unwrap();
    Connector { client, read_timeout: None, skew: Arc::default() }.call(request).await.unwrap_err()
}

#[tokio::test]
async fn a_server_that_doesnt_answer_is_waited_for_as_long_as_the_sdk_says() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = hyper_client(trust::config(), direct(), CONNECT);
    let mut request = HttpRequest::new(SdkBody::empty());
    request.set_uri(format!("http://{}/", silent.local_addr().unwrap())).unwrap();
    let (read_timeout, skew) = (Some(Duration::from_millis(100)), Arc::default());
    let connector = Connector { client, read_timeout, skew };
    assert!(connector.call(request).await.unwrap_err().is_timeout());
}

#[tokio::test]
async fn the_sdk_gets_hold_of_a_requests_connection_to_put_an_end_to_it() {
    let server = Server::start("localhost").await;
    let tls = trust::knowing(&server.certificate, nobody);
    let connector =
        Connector { client: hyper_client(tls, direct(), CONNECT), read_timeout: None, skew: Arc::default() };
    let lent = CaptureSmithyConnection::new();
    let mut request = HttpRequest::new(SdkBody::empty());
    request.set_uri(server.endpoint.clone()).unwrap();
    request.add_extension(lent.clone());
    connector.call(request).await.unwrap();
    lent.get().unwrap().poison();
}

/// A proxy for one connection. Returns its address, and later how it was asked.
async fn proxy() -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
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
    let server = Server::start("localhost").await;
    let (address, asked) = proxy().await;
    let route = Route::through(Matcher::builder().https(format!("http://ada:secret@{address}")).build());
    let client = plain(trust::knowing(&server.certificate, nobody), route);
    let tables = server.dynamodb(client).list_tables().send().await.unwrap();
    assert_eq!(tables.table_names(), ["orders"]);
    let asked = asked.await.unwrap().to_ascii_lowercase();
    let host = server.endpoint.trim_start_matches("https://");
    assert!(asked.starts_with(&format!("connect {host} http/1.1\r\n")), "{asked}");
    assert!(asked.contains("proxy-authorization: basic "), "{asked}");
}
