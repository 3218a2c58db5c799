//! Chance that can be played again: every draw follows from the printed seed.

/// SplitMix64 (Steele, Lea and Flood, 2014): small, fast, and good enough to choose faults.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A stream of its own for each `lane` of a seed, so that tasks draw the same whatever order they run in.
    pub fn new(seed: u64, lane: u64) -> Self {
        let mut rng = Self(seed ^ lane.wrapping_mul(0xd134_2543_de82_ef95));
        let start = rng.draw();
        Self(start)
    }

    /// Any number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is above zero.
    pub fn below(&mut self, end: u64) -> u64 {
        self.draw() % end
    }

    /// A number below `end`, which is above zero.
    pub fn index(&mut self, end: usize) -> usize {
        usize::try_from(self.below(end as u64)).expect("it is below a usize")
    }

    /// True in so many of a thousand draws.
    pub fn permille(&mut self, chances: u64) -> bool {
        self.below(1000) < chances
    }

    /// One of the items, of which there is at least one.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }

    /// Sixteen hexadecimal digits.
    pub fn hex(&mut self) -> String {
        format!("{:016x}", self.draw())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_and_a_lane_always_draw_the_same_and_lanes_differ() {
        let draws = |seed, lane| {
            let mut rng = Rng::new(seed, lane);
            [rng.draw(), rng.draw(), rng.draw()]
        };
        assert_eq!(draws(7, 1), draws(7, 1));
        assert_ne!(draws(7, 1), draws(7, 2));
        assert_ne!(draws(7, 1), draws(8, 1));
    }

    #[test]
    fn chances_are_about_what_they_say() {
        let mut rng = Rng::new(1, 0);
        let hits = (0..100_000).filter(|_| rng.permille(10)).count();
        assert!((800..1200).contains(&hits), "{hits}");
    }
}
