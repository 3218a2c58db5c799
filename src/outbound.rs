//! [`client`]: how each HTTP client of this program begins.
//!
//! One speaks to the upstream with callers' credentials, one downloads models, one sends traces. **None follows redirects,
//! repeats a request, asks the environment for a proxy, or says where it came from**, and each trusts the public
//! authorities that are built in, or those of a file instead, whatever the system has. What differs is added by each.

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::sync::Arc;
use std::time::Duration;

/// The certificates are no PEM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreadableCertificates;

/// A client to be finished. `ca_pem` replaces the built-in roots; `protocols` are offered in the TLS handshake (ALPN).
///
/// # Errors
/// When there is no certificate in `ca_pem`, or one that can't be read.
pub fn client(
    ca_pem: Option<&[u8]>,
    protocols: &[&[u8]],
    connect_timeout: Duration,
) -> Result<reqwest::ClientBuilder, UnreadableCertificates> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring serves TLS 1.2 and 1.3")
        .with_root_certificates(roots(ca_pem)?)
        .with_no_client_auth();
    tls.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .referer(false)
        .connect_timeout(connect_timeout)
        .user_agent(concat!("toolsearch-proxy/", env!("CARGO_PKG_VERSION"))))
}

fn roots(ca_pem: Option<&[u8]>) -> Result<RootCertStore, UnreadableCertificates> {
    let mut roots = RootCertStore::empty();
    let Some(pem) = ca_pem else {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        return Ok(roots);
    };
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|_| UnreadableCertificates)?;
        roots.add(certificate).map_err(|_| UnreadableCertificates)?;
    }
    if roots.is_empty() { Err(UnreadableCertificates) } else { Ok(roots) }
}
