//! The choices of one execution, and the next execution's: depth first, or at random.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The choices of an execution so far, and those it has to repeat.
#[derive(Debug, Default)]
pub struct Path {
    /// What was chosen, of how many.
    choices: Vec<(usize, usize)>,
    at: usize,
    random: Option<Xoshiro256PlusPlus>,
}

impl Path {
    /// Choices at random, beyond the first of each kind.
    pub fn random(seed: u64) -> Path {
        Path { random: Some(Xoshiro256PlusPlus::seed_from_u64(seed)), ..Path::default() }
    }

    /// Chooses one of `options`.
    pub fn choose(&mut self, options: usize) -> usize {
        if options < 2 {
            return 0;
        }
        if self.at == self.choices.len() {
            let chosen = match &mut self.random {
                Some(random) => (random.next_u64() % options as u64) as usize,
                None => 0,
            };
            self.choices.push((chosen, options));
        }
        let (chosen, of) = self.choices[self.at];
        assert_eq!(of, options, "an execution is not repeated: choice {}", self.at);
        self.at += 1;
        chosen
    }

    /// Goes back to the beginning, to repeat the execution.
    pub fn rewind(&mut self) {
        self.at = 0;
    }

    /// Goes back to the beginning, to take the next path. Returns false if there is none.
    pub fn next(&mut self) -> bool {
        self.at = 0;
        if self.random.is_some() {
            self.choices.clear();
            return true;
        }
        while let Some((chosen, of)) = self.choices.pop() {
            if chosen + 1 < of {
                self.choices.push((chosen + 1, of));
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_taken_once() {
        let mut path = Path::default();
        let mut seen = Vec::new();
        loop {
            let first = path.choose(3);
            seen.push((first, if first == 1 { path.choose(2) } else { path.choose(1) }));
            if !path.next() {
                break;
            }
        }
        assert_eq!(seen, [(0, 0), (1, 0), (1, 1), (2, 0)]);
    }
}
