//! What users read when something is not as it should be, and what they can do next.

use calve_testkit::fingerprint;

use crate::program::{calve, cp, probe};
use crate::spot::{Spot, names};

#[test]
fn an_option_may_stand_between_the_paths() {
    let spot = Spot::anywhere();
    spot.tree("").file("a", b"1").file("b", b"2").dir("there");
    cp().args(["a", "--strategy", "copy", "new"]).within(&spot).succeeds();
    cp().args(["a", "-q", "b", "--json", "there"]).within(&spot).succeeds();
    spot.holds(&["a", "b", "new", "there"]);
    cp().args(["a", "--strategy", "copy"]).within(&spot).fails(2).hints().says(&["name a destination after `a`"]);
}

#[test]
fn what_is_no_name_cannot_be_replaced() {
    let spot = Spot::anywhere();
    spot.tree("src").file("a", b"1");
    spot.tree("work/deep");
    let before = fingerprint(&spot);
    for dst in [".", "..", "./", "../deep/..", "/", "//"] {
        let ran = cp().args(["-T", "--replace", "../../src", dst]).within(spot.join("work/deep")).fails(1).hints();
        assert!(!ran.stderr.contains("--replace"), "{}", ran.stderr);
        ran.says(&["cannot be replaced"]);
        before.assert_unchanged(&spot);
    }
}

#[test]
fn a_negative_value_is_refused_in_the_words_of_its_option() {
    let number = |option: &str| format!("invalid value '-1' for '{option}': it must be a whole number without a sign");
    for (line, words) in [
        ("db start t --ttl -5", "invalid value '-5' for '--ttl <DURATION>': a duration is a number and s, m, h or d"),
        ("volume create x --size -1", "invalid value '-1' for '--size <SIZE>': a size is a number of bytes"),
        (
            "worktree prune --merged --older-than -5d",
            "invalid value '-5d' for '--older-than <AGE>': a number with w, d, h or m",
        ),
        ("cp --threads -2 a b", "invalid value '-2' for '--threads <N>': the number of threads is 1 to 64"),
        ("cp --threads 65 a b", "the number of threads is 1 to 64"),
        ("db pool t --size -1", &number("--size <N>")),
        ("spares add --count=-1 x", &number("--count <N>")),
        ("bench git --repo x --runs -1", "invalid value '-1' for '--runs <N>': -1 is not in 1.."),
    ] {
        let ran = calve(line.split(' ')).fails(2).says(&[words]);
        assert!(!ran.stderr.contains("tip"), "{}", ran.stderr);
    }
    calve(["rm", "-5"]).fails(2).says(&["tip: to pass '-5' as a value, use '-- -5'"]);
    for word in ["é", ""] {
        calve(["template", "list", word]).fails(2).says(&[&format!("unexpected argument '{word}' found")]);
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let spot = Spot::anywhere();
    spot.tree("").file("a", b"1");
    for command in [probe(), probe().arg("--json"), cp().args(["-q", "--json", "a", "b"])] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = command.within(&spot).command().stdout(writer).output().unwrap();
        assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
    }
}

/// Leftovers of an earlier run in the source are no user's files.
#[test]
fn hidden_names_of_calve_are_left_out_without_a_word() {
    let spot = Spot::anywhere();
    let left = spot.tree("src").file("a", b"1").dir(".calve-staging-99-b-c-d/x").dir(".calve-staging-99-b-c-d.lock");
    left.dir(".calve-trash-99-b-c-d/x").dir(".calve-trash-99-b-c-d.lock");
    let ran = cp().args(["src", "dst"]).within(&spot).succeeds();
    assert!(!ran.stderr.contains("left out") && !ran.stderr.contains(".calve-"), "{}", ran.stderr);
    assert_eq!(names(spot.join("dst")), ["a"]);
}
