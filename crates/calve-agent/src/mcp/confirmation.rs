//! Confirmation of announced actions: each token is valid once, for a limited time, for exactly the announced plan.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::documents::Problem;

const VALID: Duration = Duration::from_secs(600);

/// More plans than a user keeps in mind at once.
const MOST: usize = 100;

#[derive(Debug, Default)]
pub(super) struct Confirmations(Mutex<HashMap<String, (Instant, String)>>);

impl Confirmations {
    /// Returns a token for `plan`, a text of everything that must be unchanged at confirmation.
    pub(super) fn announce(&self, plan: String) -> Result<String, Problem> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)
            .map_err(|error| Problem::new(format!("no token can be made: {error}"), "try again"))?;
        let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        plans.retain(|_, (since, _)| since.elapsed() < VALID);
        if plans.len() >= MOST {
            let oldest = plans.iter().min_by_key(|(_, (since, _))| *since).map(|(token, _)| token.clone());
            oldest.iter().for_each(|token| drop(plans.remove(token)));
        }
        plans.insert(token.clone(), (Instant::now(), plan));
        Ok(token)
    }

    /// Fails unless the token belongs to this plan. Uses up the token either way.
    pub(super) fn confirm(&self, token: &str, plan: &str) -> Result<(), Problem> {
        let announced = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(token);
        let is_valid = |(since, announced): &(Instant, String)| since.elapsed() < VALID && announced == plan;
        let wrong = match announced {
            Some(announced) if is_valid(&announced) => return Ok(()),
            Some(_) => "it no longer matches the plan",
            None => "no plan has this token",
        };
        Err(Problem::new(wrong, "call without a token for a new plan"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_once_and_for_its_plan() {
        let plans = Confirmations::default();
        let token = plans.announce("remove a at 1".into()).unwrap();
        assert!(plans.confirm(&token, "remove a at 2").is_err());
        assert!(plans.confirm(&token, "remove a at 1").is_err(), "it was used up");
        let token = plans.announce("remove a at 1".into()).unwrap();
        plans.confirm(&token, "remove a at 1").unwrap();
        assert!(plans.confirm(&token, "remove a at 1").is_err());
        assert!(plans.confirm("", "").is_err());
    }

    #[test]
    fn plans_do_not_pile_up() {
        let plans = Confirmations::default();
        let first = plans.announce("first".into()).unwrap();
        for number in 0..MOST {
            plans.announce(number.to_string()).unwrap();
        }
        assert!(plans.confirm(&first, "first").is_err());
        assert_eq!(plans.0.lock().unwrap().len(), MOST);
    }
}
