//! [`client`]: how each HTTP client of this program begins.
//!
//! One speaks to the upstream with callers' credentials, one downloads models, one sends traces. **None follows redirects,
//! repeats a request, asks the environment for a proxy, or says where it came from**, and each trusts the public
//! authorities that are built in, or those of a file instead, whatever the system has. What differs is added by each. No
//! client shows a certificate of its own, but for one that the operator gave for the upstream.

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use url::{Host, Url};

/// Whom a client trusts, and as whom it comes. Has no `Debug`: there may be a key in it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// PEM certificates that replace the built-in roots.
    pub ca_pem: Option<Vec<u8>>,
    /// A PEM chain of certificates and the PEM key of the first of them.
    pub identity_pem: Option<(Vec<u8>, Vec<u8>)>,
}

/// Whether what is sent there stays on this machine.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

/// Whether what is sent there crosses a network unencrypted.
pub fn is_open_to_others(url: &Url) -> bool {
    url.scheme() == "http" && !is_loopback(url)
}

/// Whether what is sent there comes to what listens on this address of this machine.
pub fn leads_to(url: &Url, listen: SocketAddr) -> bool {
    let is_here = match url.host() {
        Some(Host::Ipv4(ip)) => IpAddr::V4(ip) == listen.ip(),
        Some(Host::Ipv6(ip)) => IpAddr::V6(ip) == listen.ip(),
        _ => false,
    };
    let is_local = is_loopback(url) && (listen.ip().is_loopback() || listen.ip().is_unspecified());
    let is_port = url.port_or_known_default() == Some(listen.port()) && listen.port() != 0;
    is_port && (is_here || is_local)
}

/// What of it can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnusableTls {
    /// The roots hold no PEM certificate, or one that can't be read.
    Roots,
    /// There is no chain, no key, or they do not belong together.
    Identity,
}

/// A client to be finished. `protocols` are offered in the TLS handshake (ALPN).
///
/// # Errors
/// Which part of `tls` can't be used.
pub fn client(
    tls: &Tls,
    protocols: &[&[u8]],
    connect_timeout: Duration,
) -> Result<reqwest::ClientBuilder, UnusableTls> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring serves TLS 1.2 and 1.3")
        .with_root_certificates(roots(tls.ca_pem.as_deref())?);
    let mut config = match &tls.identity_pem {
        None => config.with_no_client_auth(),
        Some((chain, key)) => {
            let chain = CertificateDer::pem_slice_iter(chain).collect::<Result<Vec<_>, _>>();
            let (Ok(chain), Ok(key)) = (chain, PrivateKeyDer::from_pem_slice(key)) else {
                return Err(UnusableTls::Identity);
            };
            config.with_client_auth_cert(chain, key).map_err(|_| UnusableTls::Identity)?
        }
    };
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(reqwest::Client::builder()
        .tls_backend_preconfigured(config)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .referer(false)
        .connect_timeout(connect_timeout)
        .user_agent(concat!("toolsearch-proxy/", env!("CARGO_PKG_VERSION"))))
}

fn roots(ca_pem: Option<&[u8]>) -> Result<RootCertStore, UnusableTls> {
    let mut roots = RootCertStore::empty();
    let Some(pem) = ca_pem else {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        return Ok(roots);
    };
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|_| UnusableTls::Roots)?;
        roots.add(certificate).map_err(|_| UnusableTls::Roots)?;
    }
    if roots.is_empty() { Err(UnusableTls::Roots) } else { Ok(roots) }
}
