//! The settings of `healthcheck`.

use super::origin::Settings;
use super::problems::Problems;
use super::{ConfigError, Seconds, Setting};
use clap::Args;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

/// Settings of `healthcheck`, as given.
#[derive(Args, Debug)]
pub struct HealthcheckArgs {
    /// The settings file that the proxy was started with
    #[arg(long, value_name = "FILE", env = "TOOLSEARCH_CONFIG")]
    config: Option<PathBuf>,
    /// The proxy's address for probes. Where it listens on all addresses, this machine is asked
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9090", env = "TOOLSEARCH_ADMIN_LISTEN")]
    admin_listen: Setting<SocketAddr>,
    /// Ask whether it runs (/livez) instead of whether it takes requests (/readyz)
    #[arg(long)]
    live: bool,
    /// Longest time for the answer
    #[arg(long, value_name = "TIME", default_value = "2s")]
    timeout: Setting<Seconds>,
    /// Where each of them came from.
    #[arg(skip)]
    pub(super) settings: Settings,
}

/// Settings of `healthcheck`, each a value that can be used.
#[derive(Clone, Debug)]
pub struct HealthcheckConfig {
    /// To be dialled.
    pub admin: SocketAddr,
    pub is_live: bool,
    pub timeout: Seconds,
}

impl HealthcheckArgs {
    /// Checks all settings.
    ///
    /// # Errors
    /// All problems at once.
    pub fn check(self, env: impl IntoIterator<Item = String>) -> Result<HealthcheckConfig, ConfigError> {
        let mut problems = Problems::of(env, &self.settings);
        let mut admin = problems.admin_listen(self.admin_listen);
        if problems.is_empty() && admin.port() == 0 {
            problems.add("--admin-listen", "must name a port: 0 is any free one");
        }
        match admin.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => admin.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(ip) if ip.is_unspecified() => admin.set_ip(Ipv6Addr::LOCALHOST.into()),
            _ => {}
        }
        let timeout = problems.positive("--timeout", self.timeout);
        problems.result(HealthcheckConfig { admin, is_live: self.live, timeout })
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Cli, Command, HealthcheckConfig};
    use std::ffi::OsString;

    fn checked(args: &[&str]) -> Result<HealthcheckConfig, Vec<String>> {
        let args = ["toolsearch-proxy", "healthcheck"].iter().chain(args).map(OsString::from);
        let Command::Healthcheck(args) = Cli::read(args).unwrap().command else { unreachable!() };
        args.check([]).map_err(|error| error.0)
    }

    #[test]
    fn an_address_that_is_listened_on_becomes_one_that_can_be_dialled() {
        for (listened, dialled) in
            [("0.0.0.0:9090", "127.0.0.1:9090"), ("[::]:9090", "[::1]:9090"), ("10.0.0.1:1", "10.0.0.1:1")]
        {
            let config = checked(&["--admin-listen", listened]).unwrap();
            assert_eq!(config.admin, dialled.parse().unwrap());
        }
        assert_eq!(checked(&[]).unwrap().admin, "127.0.0.1:9090".parse().unwrap());
    }

    #[test]
    fn what_can_not_be_dialled_is_told() {
        for args in [&["--admin-listen", "127.0.0.1:0"][..], &["--admin-listen", "a"], &["--timeout", "0"]] {
            assert_eq!(checked(args).unwrap_err().len(), 1, "{args:?}");
        }
        assert_eq!(checked(&["--config", "/does/not/exist"]).unwrap_err().len(), 1);
        let told = checked(&["--admin-listen", "a"]).unwrap_err();
        assert!(told[0].ends_with("such as 127.0.0.1:9090"), "{told:?}");
    }
}
