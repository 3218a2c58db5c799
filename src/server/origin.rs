//! Which `Host` and `Origin` headers are accepted: the guard against web pages that reach for a local server (DNS
//! rebinding).

use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue};

/// What is accepted. Requests without `Origin` do not come from a web page and pass.
#[derive(Clone, Debug, Default)]
pub struct OriginPolicy {
    /// Listening on a loopback address: only loopback names are accepted unless listed otherwise.
    pub is_loopback: bool,
    /// Accepted hosts, with or without a port; `*` accepts any. Empty means the default.
    pub hosts: Vec<String>,
    /// The host that clients dial by the operator's word, accepted beside the others.
    pub public_host: Option<String>,
    /// Accepted origins beside the default, for instance `https://app.example`.
    pub origins: Vec<String>,
}

/// A header that is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OriginFault {
    Host,
    Origin,
}

impl OriginPolicy {
    /// `target` is the authority of the request's own target, which wins over `Host` (RFC 9112, section 3.2.2).
    pub(super) fn check(&self, headers: &HeaderMap, target: Option<&Authority>) -> Result<(), OriginFault> {
        let text = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or(""));
        let hosts = headers.get_all(HOST).iter().count();
        let host = target.map_or_else(|| text(HOST).unwrap_or(""), Authority::as_str);
        if hosts > 1 || !self.accepts_host(host) {
            return Err(OriginFault::Host);
        }
        if headers.get_all(ORIGIN).iter().count() > 1
            || !text(ORIGIN).is_none_or(|origin| self.accepts_origin(origin))
        {
            return Err(OriginFault::Origin);
        }
        Ok(())
    }

    fn accepts_host(&self, host: &str) -> bool {
        if self.public_host.as_ref().is_some_and(|public| public.eq_ignore_ascii_case(without_port(host))) {
            return true;
        }
        if self.hosts.is_empty() {
            return !self.is_loopback || is_loopback_name(without_port(host));
        }
        self.hosts.iter().any(|allowed| {
            allowed == "*"
                || allowed.eq_ignore_ascii_case(host)
                || allowed.eq_ignore_ascii_case(without_port(host))
        })
    }

    /// Whether the operator listed this origin.
    pub(super) fn is_listed(&self, origin: &HeaderValue) -> bool {
        origin.to_str().is_ok_and(|origin| self.lists(origin))
    }

    fn lists(&self, origin: &str) -> bool {
        self.origins.iter().any(|allowed| allowed == "*" || allowed.eq_ignore_ascii_case(origin))
    }

    fn accepts_origin(&self, origin: &str) -> bool {
        if self.lists(origin) {
            return true;
        }
        let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        self.is_loopback && host.is_some_and(|host| is_loopback_name(without_port(host)))
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty() => name,
        _ => host,
    }
}

fn is_loopback_name(name: &str) -> bool {
    let is_v4 = name.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback());
    is_v4 || name == "[::1]" || name.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(policy: &OriginPolicy, host: &str, origin: Option<&str>) -> Result<(), OriginFault> {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        policy.check(&headers, None)
    }

    #[test]
    fn m3_on_loopback_only_loopback_names_pass() {
        let policy = OriginPolicy { is_loopback: true, ..OriginPolicy::default() };
        for host in ["127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]:8080", "[::1]", "127.0.0.9"] {
            assert_eq!(check(&policy, host, None), Ok(()), "{host}");
        }
        for host in ["evil.example.com", "localhost.evil.example", "127.0.0.1.evil.example:80", "", "::1:x"] {
            assert_eq!(check(&policy, host, None), Err(OriginFault::Host), "{host}");
        }
        assert_eq!(check(&policy, "127.0.0.1:8080", Some("http://127.0.0.1:8080")), Ok(()));
        for origin in ["http://evil.example.com", "null", "file://localhost", "http://localhost.evil.example"]
        {
            assert_eq!(check(&policy, "localhost", Some(origin)), Err(OriginFault::Origin), "{origin}");
        }
    }

    #[test]
    fn two_hosts_and_another_target_are_refused() {
        let policy = OriginPolicy { is_loopback: true, ..OriginPolicy::default() };
        let mut headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static("localhost"))]);
        let target = Authority::from_static("evil.example.com");
        assert_eq!(policy.check(&headers, Some(&target)), Err(OriginFault::Host));
        headers.append(HOST, HeaderValue::from_static("localhost"));
        assert_eq!(policy.check(&headers, None), Err(OriginFault::Host));
    }

    #[test]
    fn the_host_that_clients_dial_is_accepted_on_loopback_too() {
        let public_host = Some("gw.example".to_owned());
        let policy = OriginPolicy { is_loopback: true, public_host, ..OriginPolicy::default() };
        assert_eq!(check(&policy, "GW.example:443", None), Ok(()));
        assert_eq!(check(&policy, "localhost", None), Ok(()));
        assert_eq!(check(&policy, "evil.example", None), Err(OriginFault::Host));
    }

    #[test]
    fn t_h7_elsewhere_any_host_passes_but_no_origin_that_is_not_listed() {
        let mut policy = OriginPolicy::default();
        assert_eq!(check(&policy, "mcp.example", None), Ok(()));
        assert_eq!(check(&policy, "mcp.example", Some("https://app.example")), Err(OriginFault::Origin));
        policy.origins = vec!["https://app.example".to_owned()];
        assert_eq!(check(&policy, "mcp.example", Some("https://app.example")), Ok(()));
        policy.hosts = vec!["mcp.example".to_owned()];
        assert_eq!(check(&policy, "MCP.example:443", None), Ok(()));
        assert_eq!(check(&policy, "other.example", None), Err(OriginFault::Host));
    }
}
