//! A range of seeds as people write it.

use std::ops::Range;
use std::str::FromStr;

/// `A..B` (without B) or one seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds(pub Range<u64>);

const EXPECTED: &str =
    "say A..B, the first one and the one behind the last, for example 0..300, or one seed";

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |part: &str| {
            let number = part.trim().parse::<u64>();
            number.map_err(|_| format!("{part:?} is not a seed; {EXPECTED}"))
        };
        let range = match text.split_once("..") {
            Some((first, end)) => number(first)?..number(end)?,
            None => {
                let seed = number(text)?;
                seed..seed.checked_add(1).ok_or("the seed is too large")?
            }
        };
        if range.is_empty() {
            return Err(format!("{text:?} has no seed in it; {EXPECTED}"));
        }
        Ok(Self(range))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_single_seeds() {
        assert_eq!("3..5".parse(), Ok(Seeds(3..5)));
        assert_eq!("7".parse(), Ok(Seeds(7..8)));
        for bad in ["", "x", "5..3", "5..5", "1..x", "-1", "..5", "5.."] {
            assert!(bad.parse::<Seeds>().unwrap_err().contains("A..B"), "{bad}");
        }
    }
}
