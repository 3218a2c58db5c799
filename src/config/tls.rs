//! The files of TLS towards the upstream.

use super::problems::Problems;
use crate::outbound::Tls;
use clap::Args;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
#[command(next_help_heading = "Network")]
pub(super) struct TlsArgs {
    /// PEM file with the certificates to trust instead of the built-in public ones. Read again when it changes
    #[arg(long, value_name = "FILE", env = "TOOLSEARCH_UPSTREAM_CA")]
    upstream_ca: Option<PathBuf>,
    /// PEM file with a certificate, and what leads from it to its authority, that the proxy shows to an upstream which asks
    /// for one. It says which machine comes, never who calls. Read again when it changes
    #[arg(long, value_name = "FILE", env = "TOOLSEARCH_UPSTREAM_CLIENT_CERT")]
    upstream_client_cert: Option<PathBuf>,
    /// PEM file with the private key of --upstream-client-cert. Read again when it changes
    #[arg(long, value_name = "FILE", env = "TOOLSEARCH_UPSTREAM_CLIENT_KEY")]
    upstream_client_key: Option<PathBuf>,
}

/// Where certificates and keys are, which others may renew while the process runs.
#[derive(Clone, Debug, Default)]
pub struct TlsFiles {
    ca: Option<PathBuf>,
    identity: Option<(PathBuf, PathBuf)>,
}

impl TlsFiles {
    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.ca.is_none() && self.identity.is_none()
    }

    /// What is in them now.
    ///
    /// # Errors
    /// When one can't be read.
    pub fn read(&self) -> std::io::Result<Tls> {
        let read = |path: &Path| std::fs::read(path);
        let ca_pem = self.ca.as_deref().map(read).transpose()?;
        let identity =
            self.identity.as_ref().map(|(chain, key)| Ok::<_, std::io::Error>((read(chain)?, read(key)?)));
        Ok(Tls { ca_pem, identity_pem: identity.transpose()? })
    }
}

impl Problems {
    pub(super) fn tls(&mut self, args: TlsArgs) -> TlsFiles {
        let TlsArgs { upstream_ca, upstream_client_cert, upstream_client_key } = args;
        for (flag, path) in [
            ("--upstream-ca", &upstream_ca),
            ("--upstream-client-cert", &upstream_client_cert),
            ("--upstream-client-key", &upstream_client_key),
        ] {
            let _told = path.as_deref().and_then(|path| self.read(flag, path));
        }
        let identity = match (upstream_client_cert, upstream_client_key) {
            (Some(chain), Some(key)) => Some((chain, key)),
            (None, None) => None,
            (Some(_), None) => {
                self.add("--upstream-client-cert", "needs --upstream-client-key");
                None
            }
            (None, Some(_)) => {
                self.add("--upstream-client-key", "needs --upstream-client-cert");
                None
            }
        };
        TlsFiles { ca: upstream_ca, identity }
    }
}
