use std::path::Path;
use std::time::Duration;

use calve_core::CancelToken;
use calve_core::internal::ShownPath;

use crate::error::BenchError;
use crate::remedy::Remedy;
use crate::scratch::{Scratch, real_path};

pub struct BenchSetup<'a> {
    /// Directory for everything that is made.
    pub into: &'a Path,
    /// Called with each line of progress.
    pub say: &'a dyn Fn(&str),
    /// Called with warnings, which appear even without progress.
    pub warn: &'a dyn Fn(&str),
    pub hint: fn(&calve_core::error::Remedy) -> String,
    pub cancel: &'a CancelToken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounds {
    Exactly(u32),
    /// As many as fit into eight minutes, 3 to 10, or up to 30 short ones within two minutes.
    Fitting,
}

impl Rounds {
    pub(crate) fn another(self, done: u32, elapsed: Duration) -> bool {
        const LONG: Duration = Duration::from_secs(480);
        const SHORT: Duration = Duration::from_secs(120);
        match self {
            Self::Exactly(number) => done < number,
            Self::Fitting if done < 3 => true,
            Self::Fitting => {
                let then = elapsed + elapsed / done;
                (done < 10 && then < LONG) || (done < 30 && then < SHORT)
            }
        }
    }
}

impl BenchSetup<'_> {
    /// Measures in a new directory in `into`, and removes it, also after a failure.
    pub(crate) fn in_scratch<T>(
        &self,
        measure: impl FnOnce(&mut Scratch<'_>) -> Result<T, BenchError>,
    ) -> Result<T, BenchError> {
        let mut scratch = Scratch::make(self.into, self.warn)?;
        let measured = measure(&mut scratch);
        if !scratch.runs.is_empty() {
            (self.say)("removing everything that was made");
        }
        scratch.remove()?;
        measured
    }

    /// Resolves the tree to copy. Fails if `into` is inside it.
    pub(crate) fn tree(&self, given: &Path) -> Result<std::path::PathBuf, BenchError> {
        let tree = real_path(given)?;
        if !tree.is_dir() {
            let text = format!("`{}` is not a directory", ShownPath(given));
            return Err(BenchError::usage(text, Remedy::NameTree));
        }
        if fs_err::canonicalize(self.into).is_ok_and(|into| into.starts_with(&tree)) {
            let text = format!("`{}` is inside the tree `{}`", ShownPath(self.into), ShownPath(given));
            return Err(BenchError::usage(text, Remedy::ChoosePlaceOutsideTree));
        }
        Ok(tree)
    }
}
