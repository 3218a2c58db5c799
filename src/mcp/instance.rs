//! [`Instance`]: the name of this process in `Via`, by which a request that comes back to it is known.
//!
//! An upstream that leads back here would call us for each call of ours, without end. The name is made anew by each
//! process, so another proxy of the same kind further on is no loop.
//!
//! Source: RFC 9110, section 7.6.3.

use http::header::{HeaderMap, HeaderValue, VIA};

/// The name of one process, which tells nothing of it.
#[derive(Clone, Debug)]
pub struct Instance {
    name: String,
    via: HeaderValue,
}

impl Instance {
    /// A name that no other process has.
    ///
    /// # Panics
    /// When the operating system has no randomness to give.
    pub fn random() -> Self {
        let number = getrandom::u64().expect("the operating system gives random bytes");
        let name = format!("toolsearch-proxy-{number:016x}");
        let via = HeaderValue::from_str(&format!("1.1 {name}")).expect("a name of letters and digits");
        Self { name, via }
    }

    /// The value of `Via` in what this process sends.
    pub fn via(&self) -> &HeaderValue {
        &self.via
    }

    /// Whether a request with these headers was sent by this process.
    pub fn has_sent(&self, headers: &HeaderMap) -> bool {
        let hops = headers.get_all(VIA).iter().filter_map(|value| value.to_str().ok());
        hops.flat_map(|hops| hops.split([',', ' ', '\t'])).any(|word| word == self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_r7_our_own_name_is_found_among_the_hops_and_nobody_else_s() {
        let (ours, other) = (Instance::random(), Instance::random());
        let sent = |values: &[&str]| {
            let headers = values.iter().map(|value| (VIA, HeaderValue::from_str(value).unwrap()));
            ours.has_sent(&headers.fold(HeaderMap::new(), |mut all, (name, value)| {
                all.append(name, value);
                all
            }))
        };
        let (own, theirs) = (ours.via().to_str().unwrap(), other.via().to_str().unwrap());
        assert!(sent(&[own]));
        assert!(sent(&["1.0 fred", &format!("1.1 nginx,{own}, 1.1 x (comment)")]));
        for value in [theirs, "1.1 toolsearch-proxy", &format!("{own}0"), ""] {
            assert!(!sent(&[value]), "{value}");
        }
        assert!(!sent(&[]));
    }
}
