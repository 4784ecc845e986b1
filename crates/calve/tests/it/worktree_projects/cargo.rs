//! A cargo workspace of which one crate has its own path compiled in.

use super::Project;

fn sources(project: &Project) {
    let manifest = |name: &str, rest: &str| {
        format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n{rest}").into_bytes()
    };
    project
        .tree()
        .file("Cargo.toml", b"[workspace]\nresolver = \"2\"\nmembers = [\"plain\", \"generated\", \"placed\"]\n")
        .file("plain/Cargo.toml", manifest("plain", ""))
        .file("plain/src/lib.rs", b"pub fn one() -> u32 { 1 }\n")
        .file("generated/Cargo.toml", manifest("generated", "[dependencies]\nplain = { path = \"../plain\" }\n"))
        .file("generated/build.rs", b"fn main() {\n    let out = std::env::var(\"OUT_DIR\").unwrap();\n    std::fs::write(out + \"/made.rs\", \"pub const TWO: u32 = 2;\").unwrap();\n    println!(\"cargo:rerun-if-changed=build.rs\");\n}\n")
        .file("generated/src/lib.rs", b"include!(concat!(env!(\"OUT_DIR\"), \"/made.rs\"));\npub fn three() -> u32 { TWO + plain::one() }\n")
        .file("placed/Cargo.toml", manifest("placed", "[dependencies]\ngenerated = { path = \"../generated\" }\n"))
        .file("placed/src/lib.rs", b"pub fn here() -> &'static str { env!(\"CARGO_MANIFEST_DIR\") }\n")
        .file("placed/data.txt", b"the main worktree's\n")
        .file(
            "placed/tests/place.rs",
            b"#[test]\nfn reads_its_own_tree() {\n    assert_eq!(generated::three(), 3);\n    assert_eq!(placed::here(), std::env::var(\"CARGO_MANIFEST_DIR\").unwrap());\n    let data = std::fs::read_to_string(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/data.txt\")).unwrap();\n    assert_eq!(data, \"the main worktree's\\n\");\n}\n",
        )
        .file(".gitignore", b"target\n");
}

/// The crates that cargo says it compiled or ran anew, and those that it says were fresh.
fn built(said: &str, word: &str) -> Vec<String> {
    let lines = said.lines().filter_map(|line| line.trim_start().strip_prefix(word)?.split_whitespace().next());
    let mut crates: Vec<String> = lines.map(str::to_owned).collect();
    crates.sort();
    crates.dedup();
    crates
}

#[test]
fn a_test_reads_the_new_tree_and_other_crates_are_not_compiled_again() {
    let make = |project: &Project| {
        sources(project);
        project.run(&project.main(), "cargo", ["test", "--quiet"]);
    };
    Project::each(&["cargo"], make, |project, new| {
        let said = project.run(new, "cargo", ["test", "--verbose", "--tests"]);
        assert!(said.contains("reads_its_own_tree ... ok"), "{said}");
        assert_eq!(built(&said, "Compiling "), ["placed"], "{said}");
        assert_eq!(built(&said, "Fresh "), ["generated", "plain"], "{said}");
        // What it reads is in the new tree: a change there is seen, and one in the main worktree is not.
        fs_err::write(project.main().join("placed/data.txt"), "changed\n").unwrap();
        project.run(new, "cargo", ["test", "--quiet", "--tests"]);
        fs_err::write(new.join("placed/data.txt"), "changed\n").unwrap();
        let failed =
            std::process::Command::new("cargo").args(["test", "--quiet", "--tests"]).current_dir(new).output().unwrap();
        assert!(!failed.status.success());
    });
}
