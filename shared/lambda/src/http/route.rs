//! How a server is reached: directly, or through a proxy, and not with endless patience.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::{BoxFuture, ready};
use futures::{FutureExt as _, TryFutureExt as _};
use http::Uri;
use http::uri::Scheme;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower::Service;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Connects to servers.
#[derive(Clone)]
pub(super) struct Route {
    direct: HttpConnector,
    proxies: Arc<Matcher>,
}

impl Route {
    /// Through the proxies that the environment names, as other programs understand it.
    pub(super) fn from_env() -> Self {
        Self::through(Matcher::from_env())
    }

    pub(super) fn through(proxies: Matcher) -> Self {
        let mut direct = HttpConnector::new();
        direct.enforce_http(false);
        direct.set_nodelay(true);
        Self { direct, proxies: Arc::new(proxies) }
    }

    /// The proxy on the way, if there is one. What isn't encrypted goes to an emulator: nobody has a proxy before it.
    fn proxy(&self, to: &Uri) -> Option<Intercept> {
        if to.scheme() == Some(&Scheme::HTTPS) { self.proxies.intercept(to) } else { None }
    }
}

impl Service<Uri> for Route {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.direct.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let Some(proxy) = self.proxy(&to) else { return self.direct.call(to).err_into().boxed() };
        if proxy.uri().scheme() != Some(&Scheme::HTTP) {
            // Its credentials would go to it unencrypted.
            let unfit = io::Error::new(io::ErrorKind::Unsupported, "a proxy must have an http:// address");
            return ready(Err(unfit.into())).boxed();
        }
        let tunnel = Tunnel::new(proxy.uri().clone(), self.direct.clone());
        let mut tunnel = match proxy.basic_auth() {
            Some(credentials) => tunnel.with_auth(credentials.clone()),
            None => tunnel,
        };
        tunnel.call(to).err_into().boxed()
    }
}

/// A connection that is ready for a request: with its handshake, within some time.
#[derive(Clone)]
pub(super) struct Connect {
    pub(super) https: HttpsConnector<Route>,
    pub(super) within: Duration,
}

impl Service<Uri> for Connect {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.https.poll_ready(context)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let connected = timeout(self.within, self.https.call(to));
        connected
            .map(|ended| ended.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into())))
            .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_proxy_that_would_be_told_a_password_unencrypted_is_refused() {
        let proxies = Matcher::builder().https("https://ada:secret@proxy:3128").build();
        let refused = Route::through(proxies).call("https://sqs.example".parse().unwrap()).await;
        assert_eq!(refused.unwrap_err().to_string(), "a proxy must have an http:// address");
    }

    #[test]
    fn only_what_is_encrypted_goes_through_a_proxy_unless_it_is_excepted() {
        let proxies = Matcher::builder().https("http://ada:secret@proxy:3128").no("sqs.internal").build();
        let route = Route::through(proxies);
        let proxy = |to: &str| route.proxy(&to.parse().unwrap()).map(|proxy| proxy.uri().to_string());
        assert_eq!(
            proxy("https://dynamodb.eu-central-1.amazonaws.com").as_deref(),
            Some("http://proxy:3128/")
        );
        assert_eq!(proxy("https://sqs.internal"), None);
        assert_eq!(proxy("http://127.0.0.1:4566"), None);
    }
}
