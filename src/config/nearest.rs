//! The name that was meant, where one is misspelt.

/// Names that are less alike than this have nothing to do with each other.
const ALIKE_MIN: f64 = 0.75;

/// The known name that is nearest to a misspelt one, if any is near.
pub(super) fn nearest<'a>(misspelt: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |name: &str| name.to_ascii_lowercase().replace('_', "-");
    let misspelt = plain(misspelt);
    let near =
        known.into_iter().map(|name| (strsim::normalized_damerau_levenshtein(&misspelt, &plain(name)), name));
    let nearest =
        near.filter(|(alike, _)| *alike >= ALIKE_MIN).max_by(|one, other| one.0.total_cmp(&other.0));
    nearest.map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_that_is_near_is_meant() {
        let known = ["upstream", "upstream-ca", "catalog-ttl"];
        assert_eq!(nearest("upstraem", known), Some("upstream"));
        assert_eq!(nearest("CATALOG_TTL", known), Some("catalog-ttl"));
        assert_eq!(nearest("colour", known), None);
    }
}
