//! Who is asking: the `Authorization` header of a request and the key made from it.
//!
//! **The header is forwarded and hashed, and believed in nothing**: a claim inside a token can't be trusted unverified.
//! The one claim that is read is a JWT's `exp`, since it can only make what is kept for a caller end sooner. No type
//! here can be printed with its content.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use sha2::{Digest, Sha256};
use std::fmt;
use std::time::{Duration, SystemTime};

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

impl TokenHash {
    /// The bytes, to be part of a digest of more.
    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// A number from 0 to 1 that differs from caller to caller and tells nothing of them: to spread in time what they
    /// need.
    pub fn spread(&self) -> f64 {
        f64::from(u16::from_be_bytes([self.0[0], self.0[1]])) / f64::from(u16::MAX)
    }
}

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

    /// How long the caller's token still lives by its own word: zero when it is over, `None` when it does not say. The
    /// word is not verified.
    pub fn expires_in(&self, now: SystemTime) -> Option<Duration> {
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let expires_at = jwt_expiry(self.authorization()?.as_bytes())?;
        Some(expires_at.saturating_sub(now))
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

/// `exp` of a JWT (RFC 7519 section 4.1.4), since 1970. `None` for what is no JWT, or says nothing usable.
fn jwt_expiry(authorization: &[u8]) -> Option<Duration> {
    #[derive(serde::Deserialize)]
    struct Claims {
        exp: f64,
    }
    let (scheme, token) = authorization.split_at_checked(7)?;
    if !scheme.eq_ignore_ascii_case(b"bearer ") {
        return None;
    }
    let mut parts = token.trim_ascii().split(|&byte| byte == b'.');
    let (_header, payload, _signature) = (parts.next()?, parts.next()?, parts.next()?);
    let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
    let claims: Claims = serde_json::from_slice(&payload).ok()?;
    Duration::try_from_secs_f64(claims.exp.max(0.0)).ok()
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
    fn t_c1_a_key_is_all_of_sha_256_over_the_salt_and_the_whole_value() {
        assert_eq!(size_of::<TokenHash>(), 32);
        let salt = Salt([7; 32]);
        let long = "x".repeat(4_000);
        let key = |value: &str| caller(&salt, &[value]).unwrap().key().unwrap().0;
        let expected: [u8; 32] = Sha256::digest([&[7; 32], long.as_bytes()].concat()).into();
        assert_eq!(key(&long), expected);
        // Each bit counts, at the end of a long token too; and no two of many are the same.
        let mut keys = std::collections::HashSet::new();
        for i in 0..100_000 {
            assert!(keys.insert(key(&format!("Bearer {i}"))));
        }
        for at in [0, 1, 2_000, 3_999] {
            let mut other = long.clone();
            other.replace_range(at..=at, "y");
            assert!(keys.insert(key(&other)), "{at}");
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
    fn t_c1_t_p1_keys_differ_between_processes_and_nothing_prints_the_token() {
        let one = caller(&Salt::random(), &["Bearer hunter2"]).unwrap();
        let other = caller(&Salt::random(), &["Bearer hunter2"]).unwrap();
        assert_ne!(one.key(), other.key());
        let printed = format!("{one:?} {:?} {:?}", one.key(), one.authorization());
        assert!(!printed.contains("hunter2"), "{printed}");
        assert!(caller(&Salt::random(), &[]).unwrap().key().is_none());
    }

    fn bearer(claims: &str) -> Caller {
        let payload = URL_SAFE_NO_PAD.encode(claims);
        caller(&Salt::random(), &[&format!("Bearer eyJhbGciOiJub25lIn0.{payload}.sig")]).unwrap()
    }

    #[test]
    fn f3_an_expiry_is_read_from_a_jwt_and_from_nothing_else() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
        let left = |claims| bearer(claims).expires_in(now);
        assert_eq!(left(r#"{"sub":"a","exp":1060}"#), Some(Duration::from_secs(60)));
        assert_eq!(left(r#"{"exp":1000.5}"#), Some(Duration::from_millis(500)));
        for over in [r#"{"exp":999}"#, r#"{"exp":-5}"#, r#"{"exp":0}"#] {
            assert_eq!(left(over), Some(Duration::ZERO), "{over}");
        }
        for silent in ["{}", "1", r#"{"exp":"1060"}"#, r#"{"exp":null}"#, r#"{"exp":1e300}"#, "", "exp"] {
            assert_eq!(left(silent), None, "{silent}");
        }
        let salt = Salt::random();
        for value in ["Bearer abc", "Bearer a.b.c", "Bearer ", "Basic YTpi", "x", "Bearer ..."] {
            assert_eq!(caller(&salt, &[value]).unwrap().expires_in(now), None, "{value}");
        }
        assert_eq!(caller(&salt, &[]).unwrap().expires_in(now), None);
    }
}
