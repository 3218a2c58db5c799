//! [`Hub`]: the HTTP client for downloads.
//!
//! It is not the one that speaks to the upstream: it follows redirects, since hubs send downloads elsewhere, and it
//! carries nobody's credentials. A proxy is used only where one was named; the environment is not asked.

use std::time::Duration;

use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, LOCATION, RANGE};
use http::{HeaderMap, StatusCode};
use url::Url;

use super::FetchError;
use crate::outbound;

const REDIRECTS_MAX: usize = 5;

/// How to reach the hub.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Used for all requests; may hold a name and a password.
    pub proxy: Option<Url>,
    /// PEM certificates that replace the built-in roots.
    pub ca_pem: Option<Vec<u8>>,
    /// For a TCP and TLS handshake.
    pub connect_timeout: Duration,
    /// Longest wait for the next bytes.
    pub stall_timeout: Duration,
}

pub(super) struct Hub {
    client: reqwest::Client,
    stall_timeout: Duration,
}

/// Why a request brought nothing.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It may work in a moment.
    Passing(String),
    /// It will not.
    Lasting(FetchError),
}

impl From<FetchError> for Trouble {
    fn from(error: FetchError) -> Self {
        Self::Lasting(error)
    }
}

/// An answer with a body to read, and what the hub itself said of the file before it sent us elsewhere.
pub(super) struct Answer {
    pub response: reqwest::Response,
    /// The commit that the file is from.
    pub commit: Option<String>,
    /// The digest that the hub keeps for a large file.
    pub digest: Option<String>,
}

impl Hub {
    pub fn new(options: &ClientOptions) -> Result<Self, FetchError> {
        let tls = outbound::Tls { ca_pem: options.ca_pem.clone(), identity_pem: None };
        let builder = outbound::client(&tls, &[b"http/1.1"], options.connect_timeout);
        // Redirects are followed by hand below, with rules of our own.
        let mut client = builder
            .map_err(|_| FetchError::Settings("--ca: the file holds no readable PEM certificate".to_owned()))?
            .http1_only();
        if let Some(proxy) = &options.proxy {
            // The reason could repeat the password.
            let proxy = reqwest::Proxy::all(proxy.clone())
                .map_err(|_| FetchError::Settings("--proxy can't be used".to_owned()))?;
            client = client.proxy(proxy);
        }
        let client = client.build().map_err(|error| FetchError::Settings(error.to_string()))?;
        Ok(Self { client, stall_timeout: options.stall_timeout })
    }

    /// Asks for a file from its byte `from` on.
    pub async fn get(&self, url: &Url, from: u64) -> Result<Answer, Trouble> {
        let is_plain_allowed = url.scheme() == "http";
        let mut url = url.clone();
        let (mut commit, mut digest) = (None, None);
        for _ in 0..=REDIRECTS_MAX {
            let mut request = self.client.get(url.clone()).header(ACCEPT_ENCODING, "identity");
            if from > 0 {
                request = request.header(RANGE, format!("bytes={from}-"));
            }
            let answer = tokio::time::timeout(self.stall_timeout, request.send()).await;
            let response = match answer {
                Err(_) => return Err(Trouble::Passing(format!("{} did not answer in time", shown(&url)))),
                Ok(Err(error)) => return Err(Trouble::Passing(cannot_reach(&url, error))),
                Ok(Ok(response)) => response,
            };
            let text = |name| {
                let text = response.headers().get(name)?.to_str().ok()?;
                Some(text.trim_start_matches("W/").trim_matches('"').to_owned())
            };
            commit = commit.or_else(|| text("x-repo-commit"));
            digest = digest.or_else(|| text("x-linked-etag"));
            match response.status() {
                StatusCode::MOVED_PERMANENTLY
                | StatusCode::FOUND
                | StatusCode::SEE_OTHER
                | StatusCode::TEMPORARY_REDIRECT
                | StatusCode::PERMANENT_REDIRECT => {
                    url = target(&url, response.headers(), is_plain_allowed)?;
                }
                StatusCode::OK | StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
                    let is_coded =
                        response.headers().get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity");
                    if is_coded {
                        let why = "it is sent compressed, which was not asked for".to_owned();
                        return Err(refused(&url, why).into());
                    }
                    return Ok(Answer { response, commit, digest });
                }
                status => return Err(no_file(&url, status)),
            }
        }
        Err(refused(&url, format!("it was redirected more than {REDIRECTS_MAX} times")).into())
    }

    /// The next bytes of a body; `None` at its end.
    pub async fn chunk(&self, response: &mut reqwest::Response) -> Result<Option<bytes::Bytes>, String> {
        match tokio::time::timeout(self.stall_timeout, response.chunk()).await {
            Ok(chunk) => chunk.map_err(|error| format!("the connection broke ({})", innermost(&error))),
            Err(_) => Err(format!("nothing came for {} s", self.stall_timeout.as_secs_f32())),
        }
    }
}

/// Where a redirect leads, if that may be followed.
fn target(from: &Url, headers: &HeaderMap, is_plain_allowed: bool) -> Result<Url, FetchError> {
    let location = headers.get(LOCATION).and_then(|location| location.to_str().ok());
    let target = location.and_then(|location| from.join(location).ok());
    let Some(target) = target else {
        return Err(refused(from, "it redirects to no usable address".to_owned()));
    };
    let is_allowed = match target.scheme() {
        "https" => true,
        "http" => is_plain_allowed,
        _ => false,
    };
    if !is_allowed {
        return Err(refused(from, format!("it redirects from https to {}", target.scheme())));
    }
    if !target.username().is_empty() || target.password().is_some() {
        return Err(refused(from, "it redirects to an address with a password in it".to_owned()));
    }
    Ok(target)
}

fn no_file(url: &Url, status: StatusCode) -> Trouble {
    let url = shown(url);
    match status.as_u16() {
        408 | 429 | 500..=599 => Trouble::Passing(format!("{url} answers {status}")),
        404 | 410 => Trouble::Lasting(FetchError::Network(format!(
            "{url} answers {status}: check --base-url, and that the mirror has this model"
        ))),
        401 | 403 | 407 => Trouble::Lasting(FetchError::Network(format!(
            "{url} answers {status}: it wants a login, which fetch-model has none of; use another --base-url or --proxy"
        ))),
        _ => Trouble::Lasting(FetchError::Network(format!("{url} answers {status}"))),
    }
}

fn cannot_reach(url: &Url, error: reqwest::Error) -> String {
    let error = error.without_url();
    format!("{} can't be reached ({})", shown(url), innermost(&error))
}

/// The cause that says most.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

pub(super) fn refused(url: &Url, why: String) -> FetchError {
    FetchError::Network(format!("{}: {why}", shown(url)))
}

/// A URL without what could be a signature or a password.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let _no_password = url.set_username("").and_then(|()| url.set_password(None));
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn led(from: &str, location: &str) -> Result<String, String> {
        let from: Url = from.parse().unwrap();
        let headers = HeaderMap::from_iter([(LOCATION, location.parse().unwrap())]);
        let target = target(&from, &headers, from.scheme() == "http");
        target.map(Into::into).map_err(|error| error.to_string())
    }

    #[test]
    fn a_redirect_never_leads_from_https_to_http_or_elsewhere() {
        assert_eq!(led("https://a.example/x", "/y?z").unwrap(), "https://a.example/y?z");
        assert_eq!(led("https://a.example/x", "https://b.example/y").unwrap(), "https://b.example/y");
        assert_eq!(led("http://a.example/x", "http://b.example/y").unwrap(), "http://b.example/y");
        for bad in ["http://b.example/y", "ftp://b.example", "file:///etc/passwd", "https://me:pw@b.example/"]
        {
            assert!(led("https://a.example/x", bad).is_err(), "{bad}");
        }
        assert!(led("http://a.example/x", "file:///etc/passwd").is_err());
    }

    #[test]
    fn what_is_shown_of_an_address_holds_no_signature_and_no_password() {
        let url = "https://me:pw@cdn.example/file?Signature=secret#x".parse().unwrap();
        assert_eq!(shown(&url), "https://cdn.example/file");
    }
}
