//! Commands that take several operands.

use crate::failure::{Failure, INTERRUPTED};
use crate::output;

/// Does something with each operand, as rm does: a failure is said, an interruption ends it. Returns the end of the command, for after its result.
pub(crate) fn each<T>(
    operands: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    mut one: impl FnMut(T) -> Result<(), Failure>,
) -> Result<Result<(), Failure>, Failure> {
    let operands = operands.into_iter();
    let several = operands.len() > 1;
    let mut worst = 0;
    for operand in operands {
        match one(operand) {
            Ok(()) => {}
            Err(failure) if !several => return Err(failure),
            Err(failure) if failure.code == INTERRUPTED => return Ok(Err(failure)),
            Err(failure) => {
                output::failure(&failure);
                worst = worst.max(failure.code);
            }
        }
    }
    Ok(if worst > 0 { Err(Failure::reported(worst)) } else { Ok(()) })
}
