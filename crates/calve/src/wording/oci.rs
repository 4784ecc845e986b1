use calve_oci::Remedy;

use super::reworded;

pub(crate) fn hint(remedy: &Remedy) -> String {
    match remedy {
        Remedy::Core(remedy) => super::core::hint(remedy),
        Remedy::UseEncryption | Remedy::CheckNetwork => reworded(remedy, "plain HTTP", "`--plain-http`"),
        Remedy::PullDatabase => "pull it with `calve db template pull`".into(),
        Remedy::PullFiles => "pull it with `calve template pull`".into(),
        Remedy::PushWithKey => reworded(remedy, "push it with a key of", "run `calve template push --key` with"),
        Remedy::PushDatabaseWithKey => {
            reworded(remedy, "push it with a key of", "run `calve db template push --key` with")
        }
        Remedy::PullUnderAnotherName => format!("{remedy} with `--name NAME`"),
        Remedy::FreeSpace => format!("{remedy}: `--at DIRECTORY` for one of files, CALVE_HOME for a database"),
        other => other.to_string(),
    }
}
