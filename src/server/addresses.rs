//! [`Addresses`]: how many connections one address has open.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Open connections by the address of their client.
#[derive(Default)]
pub(super) struct Addresses(Mutex<HashMap<IpAddr, usize>>);

/// One open connection, counted until it is dropped.
pub(super) struct Counted {
    addresses: Arc<Addresses>,
    address: IpAddr,
}

impl Addresses {
    /// Counts a connection; `None` when the address has as many as it may. An IPv4 address is the same whichever way
    /// it is written.
    pub(super) fn count(self: &Arc<Self>, address: IpAddr, most: usize) -> Option<Counted> {
        let address = address.to_canonical();
        let mut addresses = self.lock();
        let count = addresses.entry(address).or_insert(0);
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Counted { addresses: Arc::clone(self), address })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut addresses = self.addresses.lock();
        if let Some(count) = addresses.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                addresses.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_x9_an_address_has_its_connections_and_one_more_is_refused() {
        let addresses = Arc::new(Addresses::default());
        let count = |address: &str| addresses.count(address.parse().unwrap(), 2);
        let (one, two) = (count("10.0.0.1"), count("::ffff:10.0.0.1"));
        assert!(one.is_some() && two.is_some() && count("10.0.0.1").is_none());
        let others = (count("10.0.0.2"), count("::1"));
        assert!(others.0.is_some() && others.1.is_some());
        drop(one);
        assert!(count("10.0.0.1").is_some());
        drop((two, others));
        assert!(addresses.lock().is_empty());
    }
}
