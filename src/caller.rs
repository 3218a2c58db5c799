//! Who is asking: the `Authorization` header of a request and the key made from it.
//!
//! **The header is never read**, only forwarded and hashed: a claim inside a token can't be trusted unverified. No
//! type here can be printed with its content.

use http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use sha2::{Digest, Sha256};
use std::fmt;

/// A random salt, one per process, so that keys mean nothing outside it.
pub struct Salt([u8; 32]);

impl Salt {
    /// A new salt from the operating system.
    ///
    /// # Panics
    /// When the operating system has no randomness to give: nothing is safe then.
    pub fn random() -> Self {
        let mut salt = [0; 32];
        getrandom::fill(&mut salt).expect("the operating system gives random bytes");
        Self(salt)
    }
}

/// SHA-256 over the salt and the whole `Authorization` value: the key of everything that is kept for a caller.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenHash([u8; 32]);

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

/// The sender of one request.
#[derive(Clone)]
pub struct Caller {
    authorization: Option<(HeaderValue, TokenHash)>,
}

/// More than one `Authorization` header, or one that joins two.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("send exactly one Authorization header with one value")]
pub struct AmbiguousAuthorization;

impl Caller {
    /// The caller of a request with these headers.
    ///
    /// # Errors
    /// When there is more than one `Authorization` value: two readers could pick different ones.
    pub fn from_headers(headers: &HeaderMap, salt: &Salt) -> Result<Self, AmbiguousAuthorization> {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let Some(value) = values.next() else { return Ok(Self { authorization: None }) };
        if values.next().is_some() || is_joined_bearer(value.as_bytes()) {
            return Err(AmbiguousAuthorization);
        }
        let mut value = value.clone();
        value.set_sensitive(true);
        let mut hash = Sha256::new();
        hash.update(salt.0);
        hash.update(value.as_bytes());
        Ok(Self { authorization: Some((value, TokenHash(hash.finalize().into()))) })
    }

    /// The header to forward, byte for byte as it came; marked sensitive.
    pub fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref().map(|(value, _)| value)
    }

    /// The key of what is kept for this caller. `None` without a header: nothing is kept then.
    pub fn key(&self) -> Option<TokenHash> {
        self.authorization.as_ref().map(|(_, key)| *key)
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.authorization.is_some() {
            "Caller(with authorization)"
        } else {
            "Caller(anonymous)"
        })
    }
}

/// A `Bearer` value with a comma: no token has one, so two headers were joined on the way.
fn is_joined_bearer(value: &[u8]) -> bool {
    value.len() > 7 && value[..7].eq_ignore_ascii_case(b"bearer ") && value.contains(&b',')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(salt: &Salt, values: &[&str]) -> Result<Caller, AmbiguousAuthorization> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        Caller::from_headers(&headers, salt)
    }

    #[test]
    fn t_c2_every_spelling_is_a_caller_of_its_own_and_is_forwarded_as_it_came() {
        let salt = Salt::random();
        let spellings = ["Bearer a", "bearer a", "Bearer  a", "Bearer a ", "Bearer A", "Basic a", "a", ""];
        let callers: Vec<Caller> = spellings.iter().map(|value| caller(&salt, &[value]).unwrap()).collect();
        for (i, one) in callers.iter().enumerate() {
            assert_eq!(one.authorization().unwrap().as_bytes(), spellings[i].as_bytes());
            for (j, other) in callers.iter().enumerate() {
                assert_eq!(one.key() == other.key(), i == j);
            }
        }
    }

    #[test]
    fn t_c3_two_values_are_refused() {
        let salt = Salt::random();
        for values in [&["Bearer a", "Bearer b"][..], &["Bearer a", "Bearer a"], &["Bearer a, Bearer b"]] {
            assert_eq!(caller(&salt, values).unwrap_err(), AmbiguousAuthorization);
        }
        assert!(caller(&salt, &["Digest username=\"a\", realm=\"b\""]).is_ok());
    }

    #[test]
    fn keys_differ_between_processes_and_nothing_prints_the_token() {
        let one = caller(&Salt::random(), &["Bearer hunter2"]).unwrap();
        let other = caller(&Salt::random(), &["Bearer hunter2"]).unwrap();
        assert_ne!(one.key(), other.key());
        let printed = format!("{one:?} {:?} {:?}", one.key(), one.authorization());
        assert!(!printed.contains("hunter2"), "{printed}");
        assert!(caller(&Salt::random(), &[]).unwrap().key().is_none());
    }
}
