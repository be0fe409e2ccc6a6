//! Which callers are allowed: programs, and pages that come from this server, but not pages of other sites, and callers on
//! other machines only if a name for them was allowed.
//!
//! A browser sends a page's requests to any address, also of this machine. After its page was loaded, a site can also
//! resolve its own name to 127.0.0.1 (DNS rebinding). `Origin` and `Sec-Fetch-Site` reveal the first case, `Host` the
//! second. The routes require that a body is declared as JSON: that excludes HTML forms of browsers that send neither
//! header.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use axum::http::header::{ACCESS_CONTROL_REQUEST_METHOD, HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use tickover_api::Problem;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Longest name of a host, in characters.
const HOST_NAME_MAX: usize = 253;

const TITLE: &str = "Forbidden";
const FOREIGN_MACHINE: &str = "callers on other machines are refused, whatever their Host header says, until the server's \
                               option --allow-host, or TICKOVER_ALLOW_HOST, gives it a name for them";
const FOREIGN_HOST: &str = "the Host header must name this machine as localhost or by a loopback address; the server's \
                            option --allow-host, or TICKOVER_ALLOW_HOST, adds other names";
const FOREIGN_ORIGIN: &str = "a page of another site may not call this server: Origin and Sec-Fetch-Site, which \
                              browsers send, must be its own";

/// A name or an address of this server that callers may use, beside the loopback ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName(String);

/// Why a text isn't a host's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a host's name or address; it has no scheme, no port and no path")]
pub struct HostNameError {
    text: String,
}

impl FromStr for HostName {
    type Err = HostNameError;

    fn from_str(text: &str) -> Result<Self, HostNameError> {
        let name = normal(text.trim());
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let fits = (1..=HOST_NAME_MAX).contains(&name.len()) && name.chars().all(is_name);
        if fits || name.parse::<IpAddr>().is_ok() {
            Ok(Self(name))
        } else {
            Err(HostNameError { text: text.chars().take(HOST_NAME_MAX).collect() })
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A host in normal form: lower case, addresses without brackets, names without the final dot.
fn normal(host: &str) -> String {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    match bare.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().to_string(),
        Err(_) => host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase(),
    }
}

/// Rejects a request that comes from another machine while no name of this one was allowed, or that comes, or may come, from a
/// page of another site.
pub(super) fn check(parts: &Parts, peer: IpAddr, allowed: &[HostName]) -> Result<(), Problem> {
    if allowed.is_empty() && !peer.to_canonical().is_loopback() {
        return Err(Problem::new(403, "foreign_machine", TITLE, FOREIGN_MACHINE));
    }
    let host = single(&parts.headers, &HOST).and_then(|host| host.parse::<Authority>().ok());
    // A request in the form for proxies also names a host in its target.
    let target = parts.uri.authority();
    let is_ours = |host: &Authority| is_allowed(host, allowed);
    let Some(host) = host.filter(|host| is_ours(host) && target.is_none_or(is_ours)) else {
        return Err(Problem::new(403, "foreign_host", TITLE, FOREIGN_HOST));
    };
    let foreign = || Problem::new(403, "foreign_origin", TITLE, FOREIGN_ORIGIN);
    if parts.headers.contains_key(ORIGIN) {
        let origin = single(&parts.headers, &ORIGIN).and_then(authority_of);
        if !origin.is_some_and(|origin| origin.eq_ignore_ascii_case(host.as_str())) {
            return Err(foreign());
        }
    }
    let site = parts.headers.get_all(SEC_FETCH_SITE);
    if !site.iter().all(|site| site == "same-origin" || site == "none") {
        return Err(foreign());
    }
    // Only pages of other sites send a CORS preflight.
    if parts.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
        return Err(foreign());
    }
    Ok(())
}

/// The text of a header that occurs exactly once.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().filter(|_| values.next().is_none());
    first.map(HeaderValue::to_str)?.ok()
}

/// Host and port of an origin. `null` has none.
fn authority_of(origin: &str) -> Option<&str> {
    origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"))
}

fn is_allowed(authority: &Authority, allowed: &[HostName]) -> bool {
    if authority.as_str().contains('@') {
        return false;
    }
    let host = normal(authority.host());
    let is_loopback =
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    is_loopback || allowed.iter().any(|name| name.0 == host)
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn code(target: &str, headers: &[(&str, &str)]) -> Option<&'static str> {
        let request = headers
            .iter()
            .fold(Request::builder().uri(target), |request, (name, value)| request.header(*name, *value));
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let allowed = ["tickover.test", "192.168.0.7"].map(|name| name.parse().unwrap());
        check(&parts, IpAddr::from([10, 0, 0, 9]), &allowed).err().map(|problem| problem.code())
    }

    #[test]
    fn without_a_name_for_them_callers_of_other_machines_are_refused_by_their_address() {
        for (peer, code) in [
            ("127.0.0.1", None),
            ("127.8.8.8", None),
            ("::1", None),
            ("::ffff:127.0.0.1", None),
            ("192.168.0.8", Some("foreign_machine")),
            ("::ffff:192.168.0.8", Some("foreign_machine")),
            ("fe80::1", Some("foreign_machine")),
        ] {
            let request = Request::builder().uri("/").header("host", "localhost").body(()).unwrap();
            let refused = check(&request.into_parts().0, peer.parse().unwrap(), &[]).err();
            assert_eq!(refused.map(|problem| problem.code()), code, "{peer}");
        }
    }

    #[test]
    fn loopback_names_and_those_that_were_allowed_are_ours_and_no_others() {
        for ours in [
            "localhost",
            "localhost:7070",
            "LOCALHOST:1",
            "localhost.",
            "127.0.0.1:7070",
            "127.8.8.8",
            "[::1]:7070",
            "[::ffff:127.0.0.1]",
            "tickover.test:80",
            "TICKOVER.test.",
            "192.168.0.7:7070",
        ] {
            assert_eq!(code("/", &[("host", ours)]), None, "{ours}");
        }
        for foreign in [
            "evil.test",
            "localhost.evil.test",
            "evil.localhost",
            "0.0.0.0:7070",
            "[::]:7070",
            "127.0.0.1.nip.io",
            "",
            "tickover.test.evil.test",
            "192.168.0.8",
            "user@localhost",
            "localhost:7070@evil.test",
            "10.0.0.1",
            "a b",
        ] {
            assert_eq!(code("/", &[("host", foreign)]), Some("foreign_host"), "{foreign}");
        }
        assert_eq!(code("/", &[]), Some("foreign_host"));
        assert_eq!(code("/", &[("host", "localhost"), ("host", "localhost")]), Some("foreign_host"));
        assert_eq!(code("http://evil.test/", &[("host", "localhost")]), Some("foreign_host"));
        assert_eq!(code("http://localhost/", &[("host", "localhost")]), None);
    }

    #[test]
    fn a_page_may_call_the_server_it_came_from_and_no_other() {
        let host = ("host", "localhost:7070");
        for (name, value, expected) in [
            ("origin", "http://localhost:7070", None),
            ("origin", "http://LOCALHOST:7070", None),
            ("origin", "https://localhost:7070", None),
            ("origin", "http://localhost:3000", Some("foreign_origin")),
            ("origin", "http://localhost", Some("foreign_origin")),
            ("origin", "http://127.0.0.1:7070", Some("foreign_origin")),
            ("origin", "https://evil.test", Some("foreign_origin")),
            ("origin", "null", Some("foreign_origin")),
            ("origin", "", Some("foreign_origin")),
            ("sec-fetch-site", "same-origin", None),
            ("sec-fetch-site", "none", None),
            ("sec-fetch-site", "same-site", Some("foreign_origin")),
            ("sec-fetch-site", "cross-site", Some("foreign_origin")),
            ("sec-fetch-site", "", Some("foreign_origin")),
            ("access-control-request-method", "POST", Some("foreign_origin")),
        ] {
            assert_eq!(code("/", &[host, (name, value)]), expected, "{name}: {value}");
        }
        let twice = [host, ("origin", "http://localhost:7070"), ("origin", "http://localhost:7070")];
        assert_eq!(code("/", &twice), Some("foreign_origin"));
    }

    #[test]
    fn a_host_to_allow_is_a_name_or_an_address_and_nothing_else() {
        for (text, name) in
            [("Tickover.Test.", "tickover.test"), ("[::5]", "::5"), (" 10.0.0.1 ", "10.0.0.1")]
        {
            assert_eq!(text.parse::<HostName>().unwrap().to_string(), name);
        }
        for wrong in ["", "http://a", "a:7070", "a/b", "*", "a b", "*.a.test"] {
            assert!(wrong.parse::<HostName>().is_err(), "{wrong}");
        }
    }
}
