//! The measures of one answer, and intervals of their means.
//!
//! ```text
//! recall@k = relevant tools among the first k / relevant tools
//! MRR      = 1 / place of the first relevant tool
//! DCG@10   = sum over the first 10 of  gain / log2(place + 1);  nDCG@10 = DCG@10 / DCG@10 of a perfect answer
//! ```
//!
//! Source: Järvelin and Kekäläinen, Cumulated Gain-Based Evaluation of IR Techniques (2002). Intervals are percentiles of
//! means over resampled questions (Efron, 1979).

use super::questions::Question;

/// Recall is measured among so many first tools.
pub(super) const CUTS: [usize; 4] = [1, 3, 5, 10];

/// The measures of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Measures {
    /// In the order of [`CUTS`].
    pub recall: [f64; 4],
    pub reciprocal_rank: f64,
    pub ndcg: f64,
}

impl Measures {
    /// Of `ranked`, an answer to a question that has one.
    pub fn new(question: &Question, ranked: &[&str]) -> Self {
        let relevant = |name: &&str| question.relevant.iter().any(|relevant| relevant == name);
        let found = |k: usize| ranked.iter().take(k).filter(|name| relevant(name)).count() as f64;
        let first = ranked.iter().position(relevant);
        let gains = ranked.iter().map(|name| question.gain(name));
        Self {
            recall: CUTS.map(|k| found(k) / question.relevant.len() as f64),
            reciprocal_rank: first.map_or(0.0, |place| 1.0 / (place + 1) as f64),
            ndcg: dcg(gains) / dcg(question.ideal_gains().into_iter()).max(f64::MIN_POSITIVE),
        }
    }

    /// The mean; zeros for none.
    pub fn mean(all: &[Self]) -> Self {
        let mean = |measure: fn(&Self) -> f64| all.iter().map(measure).sum::<f64>() / all.len().max(1) as f64;
        Self {
            recall: [
                mean(|m| m.recall[0]),
                mean(|m| m.recall[1]),
                mean(|m| m.recall[2]),
                mean(|m| m.recall[3]),
            ],
            reciprocal_rank: mean(|m| m.reciprocal_rank),
            ndcg: mean(|m| m.ndcg),
        }
    }
}

fn dcg(gains: impl Iterator<Item = f64>) -> f64 {
    gains.take(10).zip(2_u32..).map(|(gain, place)| gain / f64::from(place).log2()).sum()
}

/// The middle 95% of the means of resampled `values`; `None` without resamples or values. The same every time.
pub(super) fn interval(values: &[f64], resamples: usize) -> Option<(f64, f64)> {
    if values.is_empty() || resamples == 0 {
        return None;
    }
    let mut random = SplitMix(0);
    let mut means: Vec<f64> = (0..resamples)
        .map(|_| {
            let drawn = values.iter().map(|_| values[(random.next() % values.len() as u64) as usize]);
            drawn.sum::<f64>() / values.len() as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    let at = |share: f64| means[((means.len() - 1) as f64 * share).round() as usize];
    Some((at(0.025), at(0.975)))
}

/// Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators (2014).
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(relevant: &[&str], grades: &[(&str, u32)]) -> Question {
        Question {
            id: "q".into(),
            query: String::new(),
            lang: "en".into(),
            relevant: relevant.iter().map(|&name| name.into()).collect(),
            grades: grades.iter().map(|&(name, grade)| (name.into(), grade)).collect(),
        }
    }

    #[test]
    fn measures_follow_their_definitions() {
        let measures = Measures::new(&question(&["a", "b"], &[]), &["x", "a", "y", "b"]);
        assert_eq!(measures.recall, [0.0, 0.5, 1.0, 1.0]);
        assert_eq!(measures.reciprocal_rank, 0.5);
        let expected = (1.0 / 3_f64.log2() + 1.0 / 5_f64.log2()) / (1.0 + 1.0 / 3_f64.log2());
        assert!((measures.ndcg - expected).abs() < 1e-12);
    }

    #[test]
    fn better_grades_first_is_a_perfect_answer() {
        let question = question(&["a"], &[("a", 2), ("b", 1)]);
        assert_eq!(Measures::new(&question, &["a", "b"]).ndcg, 1.0);
        assert!(Measures::new(&question, &["b", "a"]).ndcg < 1.0);
    }

    #[test]
    fn interval_holds_the_mean_and_is_the_same_every_time() {
        let values: Vec<f64> = (0..200).map(|i| f64::from(u8::from(i % 4 != 0))).collect();
        let (low, high) = interval(&values, 1000).unwrap();
        assert!(low < 0.75 && 0.75 < high && high - low < 0.2);
        assert_eq!(interval(&values, 1000), Some((low, high)));
        assert_eq!(interval(&[], 1000), None);
    }
}
