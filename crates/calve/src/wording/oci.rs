//! Words for calve-oci: what to type or change next.

use calve_oci::Remedy;

/// Says what to do next, in one sentence without a full stop.
pub(crate) fn hint(remedy: &Remedy) -> String {
    let fixed = match remedy {
        Remedy::Core(remedy) => return super::core::hint(remedy),
        Remedy::LogIn(registry) => {
            return format!("log in with an account that may: `docker login {registry}` or `podman login {registry}`");
        }
        Remedy::NameImage => "name the image in full, such as ghcr.io/team/deps:main",
        Remedy::UseEncryption => {
            "leave out `--plain-http`; it is for a registry on this machine, such as 127.0.0.1:5000"
        }
        Remedy::CheckImage => "check the names of the repository and the tag",
        Remedy::TryLater => "try again later",
        Remedy::CheckNetwork => {
            "check the name and the port of the registry, and the network; a registry on this machine without encryption needs `--plain-http`"
        }
        Remedy::AskRegistry => {
            "look into the log of the registry, or of a proxy before it; pushing again repairs a damaged image"
        }
        Remedy::PushTemplate => "push a template there first, with `calve template push` or `calve db template push`",
        Remedy::PullDatabase => "pull it with `calve db template pull`",
        Remedy::PullFiles => "pull it with `calve template pull`",
        Remedy::PushWithKey => {
            "create the template, then run `calve template push --key` with the same files in the same order"
        }
        Remedy::RemakeWithoutEntry => "make the template again without it",
        Remedy::RemakeSmaller => "make a template with less data",
        Remedy::PullUnderAnotherName => "pull it under another name with `--name NAME`",
        Remedy::FreeSpace => {
            "free some space there, or keep the template elsewhere: `--at DIRECTORY` for one of files, CALVE_HOME for a database"
        }
        Remedy::CheckSystem => "check the owner and mode of what is named, and the limits of your session (ulimit -a)",
        _ => "see `calve template --help`",
    };
    fixed.to_owned()
}
