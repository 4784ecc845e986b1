use calve_core::CancelToken;

use super::report::reported;
use crate::cli::bench_db::BenchDbArguments;
use crate::commands::db::home::{home, supervisor};
use crate::failure::{FAILED, Failure};
use calve_bench::db::DatabaseBench;

pub(crate) fn run(arguments: &BenchDbArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let (home, supervisor) = (home()?, supervisor()?);
    let directory = crate::home::directory()
        .map_err(|why| Failure::stated(FAILED, why, "set CALVE_HOME to a directory of your own"))?;
    // A home that is not there yet has no template, which the start of a server says.
    fs_err::create_dir_all(&directory)?;
    reported(&arguments.report, &directory, cancel, |setup| {
        let bench = DatabaseBench {
            setup,
            home: &home,
            supervisor: &supervisor,
            template: &arguments.template,
            query: &arguments.query,
            write: arguments.write.as_deref(),
            runs: arguments.runs,
            steps: arguments.steps.unwrap_or(arguments.runs),
        };
        bench.run()
    })
}
