use crate::failure::{Failure, INTERRUPTED};
use crate::output;

/// Runs `one` for each operand like rm: reports failures and goes on, except after an interruption. Returns the
/// command's outcome, to be used after printing its result.
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
