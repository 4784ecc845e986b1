use std::env;
use std::path::PathBuf;

/// Returns the `calve` program of the same build profile as the running test.
///
/// Cargo sets `CARGO_BIN_EXE_calve` only for the tests of the program's own crate. This does not build the program. The
/// environment variable `CALVE_BINARY` names another one.
///
/// # Panics
/// If the program has not been built.
pub fn calve_binary() -> PathBuf {
    let binary = env::var_os("CALVE_BINARY").map_or_else(beside_this_test, PathBuf::from);
    assert!(
        binary.is_file(),
        "`{}` does not exist: run `cargo build -p calve` (with the same profile and target directory) first",
        binary.display()
    );
    binary
}

/// Tests are in `target/<profile>/deps`, doctests and examples at other depths, programs in `target/<profile>`.
fn beside_this_test() -> PathBuf {
    let test = env::current_exe().unwrap_or_else(|error| panic!("the path of the running test is unknown: {error}"));
    let profile = test
        .ancestors()
        .find(|dir| dir.join("deps").is_dir())
        .unwrap_or_else(|| panic!("`{}` is not in a cargo target directory", test.display()));
    profile.join("calve")
}
