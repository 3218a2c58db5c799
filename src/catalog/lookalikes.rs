//! [`Lookalikes`]: names that a person could take for one another.
//!
//! A server that lists `gіt__push`, with a Cyrillic letter, beside another's `git__push` may want the trust that the
//! other has. Names are matched byte for byte, so nothing is called by mistake here; but whoever reads "read-only" beside
//! one of two names that look alike is to be asked before either is called. Names of ASCII alone are what they look like:
//! `l` and `1` differ in many honest names.
//!
//! Source: Unicode Technical Standard #39, section 4, "Confusable Detection".

use crate::budget::on_heap;
use std::collections::HashMap;
use unicode_security::skeleton;

/// Names in a listing that look like another one in it, sorted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Lookalikes(Box<[Box<str>]>);

impl Lookalikes {
    /// # Cost
    /// Nothing where all names are ASCII; else some microseconds a name.
    pub(super) fn among<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Self {
        if names.clone().all(str::is_ascii) {
            return Self::default();
        }
        let mut groups: HashMap<String, Vec<&str>> = HashMap::new();
        for name in names {
            let group = groups.entry(skeleton(name).collect()).or_default();
            if !group.contains(&name) {
                group.push(name);
            }
        }
        let is_alike = |group: &Vec<&str>| group.len() > 1 && !group.iter().all(|name| name.is_ascii());
        let mut names: Vec<Box<str>> =
            groups.into_values().filter(is_alike).flatten().map(Box::from).collect();
        names.sort_unstable();
        Self(names.into())
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.0.binary_search_by(|known| (**known).cmp(name)).is_ok()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.0.iter().map(|name| size_of::<Box<str>>() + on_heap(name.len())).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_r5_names_that_look_alike_are_found_whatever_letters_they_are_made_of() {
        for (names, alike) in [
            (&["git__push", "g\u{456}t__push", "git__pull"][..], &["git__push", "g\u{456}t__push"][..]),
            (&["users", "\u{57d}sers"], &["users", "\u{57d}sers"]),
            (&["a\u{200b}b", "ab"], &["a\u{200b}b", "ab"]),
            (&["\u{ff47}it", "git"], &["git", "\u{ff47}it"]),
            (&["\u{105}\u{17e}uolas", "azuolas"], &[]),
            (&["list_l", "list_1", "listI"], &[]),
            (&["list_l", "list_1", "\u{17e}"], &[]),
            (&["\u{17e}", "\u{17e}"], &[]),
        ] {
            let found = Lookalikes::among(names.iter().copied());
            let mut alike: Vec<&str> = alike.to_vec();
            alike.sort_unstable();
            assert_eq!(found.0.iter().map(|name| &**name).collect::<Vec<_>>(), alike, "{names:?}");
            assert!(names.iter().all(|name| found.contains(name) == alike.contains(name)));
        }
    }
}
