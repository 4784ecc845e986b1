//! In which order trials take their turns.

/// The numbers below `count`, for one round. Each second round goes backwards through the one before it, and each pair of rounds begins
/// with another number: what changes meanwhile, such as the machine's speed or a file system that fills up, is spread over all.
pub(super) fn turns(round: usize, count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |step| {
        let step = if round.is_multiple_of(2) { step } else { count - 1 - step };
        (step + round / 2) % count
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_has_each_once_and_over_two_rounds_all_have_the_same_place() {
        const COUNT: usize = 6;
        let rounds: Vec<Vec<usize>> = (0..2 * COUNT).map(|round| turns(round, COUNT).collect()).collect();
        for (round, order) in rounds.iter().enumerate() {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..COUNT).collect::<Vec<_>>());
            assert!(!rounds[..round].contains(order), "round {round} repeats an order");
        }
        for pair in rounds.chunks(2) {
            for number in 0..COUNT {
                let place = |order: &[usize]| order.iter().position(|one| *one == number).unwrap();
                assert_eq!(place(&pair[0]) + place(&pair[1]), COUNT - 1, "{pair:?}");
            }
        }
        assert_eq!(turns(3, 0).count(), 0);
    }
}
