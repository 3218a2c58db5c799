//! How many typing errors are between two names.

/// How often each letter occurs: a to z, the digits in one, the rest in five.
pub(super) type Letters = [u8; 32];

pub(super) fn letters(folded: &[char]) -> Letters {
    let mut counts = [0_u8; 32];
    for &character in folded {
        let bucket = match character {
            'a'..='z' => u32::from(character) - u32::from('a'),
            '0'..='9' => 26,
            other => 27 + u32::from(other) % 5,
        };
        let count = &mut counts[bucket as usize];
        *count = count.saturating_add(1);
    }
    counts
}

/// At least this many errors are between two names: each error mends one letter too many and one too few.
pub(super) fn distance_at_least(left: &Letters, right: &Letters) -> usize {
    let surplus = |one: &Letters, other: &Letters| -> u16 {
        one.iter().zip(other).map(|(one, other)| u16::from(one.saturating_sub(*other))).sum()
    };
    usize::from(surplus(left, right).max(surplus(right, left)))
}

/// The distance if it is at most `allowed`; only the diagonal band that it can lie in is computed.
///
/// `d[i][j] = min(d[i-1][j] + 1, d[i][j-1] + 1, d[i-1][j-1] + (a[i] != b[j]))`, and `d[i-2][j-2] + 1` where the last two
/// letters are swapped. Three rows are kept, one after the other, in `rows`.
pub(super) fn distance_within(
    left: &[char],
    right: &[char],
    allowed: usize,
    rows: &mut Vec<usize>,
) -> Option<usize> {
    if left.len().abs_diff(right.len()) > allowed {
        return None;
    }
    let width = right.len() + 1;
    let far = allowed + 1;
    rows.clear();
    rows.resize(3 * width, far);
    for (column, cell) in rows[..width].iter_mut().enumerate() {
        *cell = column.min(far);
    }
    for row in 1..=left.len() {
        let (now, last, before) = ((row % 3) * width, ((row + 2) % 3) * width, ((row + 1) % 3) * width);
        rows[now..now + width].fill(far);
        rows[now] = row.min(far);
        let first = row.saturating_sub(allowed).max(1);
        let mut least = rows[now];
        for column in first..=(row + allowed).min(right.len()) {
            let changed = usize::from(left[row - 1] != right[column - 1]);
            let mut cell = (rows[last + column - 1] + changed).min(rows[last + column] + 1);
            cell = cell.min(rows[now + column - 1] + 1);
            let swapped = row > 1
                && column > 1
                && left[row - 1] == right[column - 2]
                && left[row - 2] == right[column - 1];
            if swapped {
                cell = cell.min(rows[before + column - 2] + 1);
            }
            rows[now + column] = cell.min(far);
            least = least.min(cell);
        }
        if least > allowed {
            return None;
        }
    }
    Some(rows[(left.len() % 3) * width + right.len()]).filter(|&distance| distance <= allowed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn letters_of(name: &str) -> Vec<char> {
        name.chars().collect()
    }

    #[test]
    fn distance_counts_a_swap_as_one_and_stops_at_the_bound() {
        let distance = |left: &str, right: &str, allowed: usize| {
            distance_within(&letters_of(left), &letters_of(right), allowed, &mut Vec::new())
        };
        for (left, right, expected) in [
            ("kitten", "sitting", 3),
            ("ab", "ba", 1),
            ("", "abc", 3),
            ("same", "same", 0),
            ("abcdef", "abdcfe", 2),
        ] {
            assert_eq!(distance(left, right, 3), Some(expected), "{left} {right}");
            if expected > 0 {
                assert_eq!(distance(left, right, expected - 1), None, "{left} {right}");
            }
        }
    }

    proptest! {
        #[test]
        fn banded_distance_is_the_full_distance(left in "[abc]{0,9}", right in "[abc]{0,9}", allowed in 0_usize..10) {
            let (left, right) = (letters_of(&left), letters_of(&right));
            let banded = distance_within(&left, &right, allowed, &mut Vec::new());
            prop_assert!(distance_at_least(&letters(&left), &letters(&right)) <= full_distance(&left, &right));
            prop_assert_eq!(banded, Some(full_distance(&left, &right)).filter(|&distance| distance <= allowed));
        }
    }

    fn full_distance(left: &[char], right: &[char]) -> usize {
        let mut cells = vec![vec![0; right.len() + 1]; left.len() + 1];
        for row in 0..=left.len() {
            for column in 0..=right.len() {
                cells[row][column] = match (row, column) {
                    (0, other) | (other, 0) => other,
                    _ => {
                        let changed = usize::from(left[row - 1] != right[column - 1]);
                        let cell = (cells[row - 1][column - 1] + changed)
                            .min(cells[row - 1][column] + 1)
                            .min(cells[row][column - 1] + 1);
                        let swapped = row > 1
                            && column > 1
                            && left[row - 1] == right[column - 2]
                            && left[row - 2] == right[column - 1];
                        if swapped { cell.min(cells[row - 2][column - 2] + 1) } else { cell }
                    }
                };
            }
        }
        cells[left.len()][right.len()]
    }
}
