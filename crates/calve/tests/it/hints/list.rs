//! Every remedy of the libraries, with the test that makes its situation, or with why none does.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::case::Case;
use super::{bench, core, db, git};

/// Who makes the situation in which a remedy is shown.
enum HintTest {
    /// A test, which asserts the remedy or its words: its file below `crates`, and its name.
    By(&'static str, &'static str),
    /// None, for this reason.
    Nowhere(&'static str),
}
use HintTest::{By, Nowhere};

const RACE: &str = "another process has to act between two calls, which nothing can hold apart";
const TROUBLE: &str = "calve/tests/it/git/trouble.rs";

const GIT: &[(&str, HintTest)] = &[
    (
        "GoOnline",
        By("calve/tests/it/worktree/partial.rs", "what_a_remote_does_not_send_is_said_to_be_there_and_nothing_is_left"),
    ),
    ("GiveAge", By("calve/tests/it/worktree/merged.rs", "a_branch_without_a_commit_of_its_own_is_new_and_not_merged")),
    ("KeepDataOrForce", By(SERVICES, "data_that_nobody_wrote_to_goes_with_its_worktree")),
    ("AllowReading", Nowhere("a directory that cannot be searched hides the worktree from git as well")),
    ("AskGitStatus", Nowhere("git is asked first, and no index is known that git reads and Calve does not")),
    ("CheckPath", Nowhere("each failure of the system that could be made has a remedy of its own")),
    ("CheckWorktree", Nowhere(RACE)),
    ("ChooseTransportOrDropRequirement", Nowhere("where a server has no shallow clones, git fails by itself")),
    ("CutShort", By(TROUBLE, "a_server_that_dies_in_the_middle_leaves_nothing")),
    ("DiskFull", By(TROUBLE, "a_full_disk_leaves_room_again")),
    ("Filter", By(TROUBLE, "what_failed_in_a_checkout_is_told_as_that")),
    ("GiveNewPath", Nowhere("a path without a name exists, which is found out first")),
    (
        "RemoveWithGit",
        By("calve/tests/it/worktree/kinds.rs", "without_logs_that_can_be_read_nothing_is_removed_or_trusted"),
    ),
    ("NoCommit", By(TROUBLE, "an_unknown_branch_commit_repository_and_host_are_named")),
    ("Ownership", By(TROUBLE, "somebody_elses_repository_is_told_with_gits_command")),
    ("Refused", By(TROUBLE, "who_is_not_let_in_is_told_and_what_he_said_is_not_repeated")),
    ("RunAgain", Nowhere(RACE)),
    ("RunAgainUnchanged", By(TROUBLE, "an_interrupted_clone_ends_its_children_and_leaves_nothing")),
    ("SourceShallow", By("calve/tests/it/git/endless.rs", "a_shallow_source_that_cannot_be_looked_at_is_given_up")),
    ("StopWriters", Nowhere(RACE)),
    ("Transfer", Nowhere("it is one of a transfer's, in the words for it")),
    (
        "TrustOwner",
        By("calve/tests/it/worktree/partial.rs", "a_repository_of_somebody_else_is_refused_with_gits_remedy"),
    ),
    ("WaitOrChooseAnotherBranch", Nowhere(RACE)),
];

const BAD_INPUT: &str = "calve/tests/it/bad_input.rs";
const FULL: &str = "calve-core/tests/it/atomicity/full.rs";
const BULK: &str = "calve-core/tests/it/bulk.rs";
const RM: &str = "calve/tests/it/rm.rs";
const PROBE: &str = "calve/tests/it/probe.rs";

const CORE: &[(&str, HintTest)] = &[
    ("KeepSpares", By("calve/tests/it/spares.rs", "probe_and_dry_runs_tell_of_spares")),
    ("LeaveOutOfTemplate", By(REGISTRY, "what_would_change_who_may_do_what_is_not_pushed")),
    ("SendTemplateAgain", By(BAD_REGISTRY, "an_image_cannot_write_outside_of_its_template")),
    ("SetHome", By("calve/tests/it/template.rs", "without_a_home_there_are_no_templates")),
    ("AllowDeleting", By(RM, "a_parent_that_cannot_be_written_to_stops_nothing_it_need_not")),
    ("AllowNamespaces", By("calve/tests/it/run.rs", "without_namespaces_it_says_so")),
    ("KeepChangesElsewhere", By("calve/tests/it/run.rs", "changes_cannot_be_kept_in_the_tree_itself")),
    ("MergeChanges", By("calve/tests/it/run/apply.rs", "what_changed_meanwhile_is_not_replaced")),
    ("EndLeftProcesses", By("calve/tests/it/run/apply.rs", "only_what_was_listed_is_applied")),
    ("PutBack", By("calve/tests/it/run/apply.rs", "what_cannot_be_taken_back_is_kept")),
    ("CheckCommand", By("calve/tests/it/run.rs", "its_exit_code_is_the_commands")),
    ("AllowReading", By(BAD_INPUT, "a_file_that_must_not_be_read_is_named")),
    ("CheckDevice", By(BAD_INPUT, "a_file_system_that_cannot_read_one_file")),
    ("CheckDiskAfterClone", By("calve/tests/it/faults.rs", "syncing_and_verifying")),
    ("CheckPathForDirectory", By(BULK, "two_threads_in_one_directory_go_on_or_stop_at_what_is_in_the_way")),
    ("CheckPermissions", By(BAD_INPUT, "the_parent_of_the_destination_is_read_only")),
    ("ChooseWritableFileSystem", By("calve-core/tests/it/atomicity/places.rs", "a_read_only_file_system_is_named")),
    ("CloneAnotherKind", By("calve/tests/it/hints.rs", "a_hint_stands_for_each_mistake_in_the_paths")),
    ("CloneIntoSubvolume", By(PROBE, "a_subvolume_can_be_snapshotted")),
    (
        "DeleteAsRoot",
        By("calve/tests/it/unprivileged.rs", "what_another_user_owns_in_a_tree_is_told_before_it_is_moved_away"),
    ),
    ("FreeQuota", By(FULL, "a_quota_is_named")),
    ("FreeQuotaForRest", By(FULL, "a_quota_is_named")),
    ("FreeSpace", By(BAD_INPUT, "the_disk_is_full_in_the_middle")),
    ("FreeSpaceForRest", By(BULK, "a_full_disk_leaves_no_half_file")),
    ("FreeSpaceOrShare", By(BAD_INPUT, "the_disk_is_too_small_and_that_is_known_before")),
    ("FreeSpaceToDelete", By(RM, "what_a_full_btrfs_cannot_even_delete_goes_when_a_file_was_emptied")),
    ("GiveRelativePaths", By(BULK, "nothing_is_written_outside_of_the_root")),
    ("KeepInSubvolume", By(PROBE, "refusals_come_with_reasons_and_remedies")),
    ("KeepSourceStill", By("calve-core/tests/it/changing.rs", "where_stores_leave_no_trace_nothing_is_stable")),
    ("MakeMissingDirectory", By(BULK, "what_is_no_file_is_named")),
    ("MoveToSharingFileSystem", By("calve/tests/it/space.rs", "elsewhere_it_is_refused")),
    ("NameEntriesOfRoot", Nowhere("it takes a second name of the machine's root, which no test may make")),
    ("NameRegularFile", By(BULK, "what_is_no_file_is_named")),
    ("OverwriteOrChooseAnotherPath", By(BULK, "files_that_are_there_are_overwritten_or_refused")),
    ("RemoveOldTree", By(BAD_INPUT, "a_file_system_that_cannot_rename_without_replacing")),
    (
        "RetryWhileIdle",
        By("calve-core/tests/it/conformance/verify.rs", "a_difference_is_caught_and_nothing_is_published"),
    ),
    ("RetryWithoutCleaner", By(BAD_INPUT, "the_staged_tree_is_taken_away")),
    ("RunAsOwner", By(PROBE, "only_its_owner_snapshots_a_subvolume")),
    ("RunAsOwnerOrClearImmutable", By(RM, "what_is_immutable_is_told")),
    ("ShareOneFileSystem", By(PROBE, "refusals_come_with_reasons_and_remedies")),
    ("StayOnFileSystem", By(PROBE, "a_pair_is_judged_as_a_pair")),
    ("Unmount", By("calve/tests/it/hints.rs", "a_mount_point_is_to_be_unmounted")),
    ("WaitForLease", Nowhere("the kernel ends a lease after 45 seconds, which is as long as Calve waits")),
];

const SERVERS: &str = "calve-db/tests/it/bad_input.rs";
const TAKING_OVER: &str = "calve-db/tests/it/taking_over.rs";
const ENDED: &str = "calve-db/tests/it/ended.rs";
const TEMPLATES: &str = "calve-db/tests/it/templates.rs";

const CONTAINERS: &str = "calve-db/tests/it/containers.rs";
const IMAGES: &str = "calve-db/tests/it/images.rs";

const SERVICES: &str = "calve/tests/it/worktree/services.rs";

const DB: &[(&str, HintTest)] = &[
    ("ChooseProgramTemplate", By(SERVICES, "a_template_from_an_image_is_refused")),
    (
        "ForceStop",
        By("calve-db/tests/it/services.rs", "a_server_that_cannot_write_its_data_goes_on_until_it_is_forced_to_end"),
    ),
    ("ForceRemoval", By(SERVICES, "data_that_nobody_wrote_to_goes_with_its_worktree")),
    ("StartThrowaway", By(SERVICES, "what_is_swept_stopped_or_reset_is_never_the_data_of_a_worktree")),
    ("TryAgain", Nowhere("a process of a server that was killed has to live on for a minute")),
    ("UseLocalServer", By(IMAGES, "no_engine_of_docker_that_fits")),
    ("RemoveVolumes", By(TEMPLATES, "a_template_in_volumes_of_an_engine_is_refused_and_kept")),
    ("CheckRuntime", By(IMAGES, "no_runtime_and_no_fitting_image")),
    ("ChooseImage", By(IMAGES, "no_runtime_and_no_fitting_image")),
    ("GrantIds", By(CONTAINERS, "another_user_than_root_needs_subordinate_ids")),
    ("InstallRuntime", By(IMAGES, "no_runtime_and_no_fitting_image")),
    ("PullImage", By(IMAGES, "an_image_that_was_removed")),
    ("Engine", Nowhere("it is one of the engine's, in the words for it")),
    ("ListMarks", By("calve-db/tests/it/marks.rs", "marks_that_make_no_sense")),
    ("RemoveMark", By("calve-db/tests/it/marks.rs", "marks_that_make_no_sense")),
    ("CheckOwner", By(SERVERS, "what_belongs_to_others_and_accounts_that_are_missing")),
    ("CheckServerProgram", By(SERVERS, "a_server_that_crashes_at_start")),
    ("ChooseAnotherPort", By("calve-db/tests/it/sockets.rs", "a_port_that_is_taken")),
    ("ChooseMatchingVersion", By(ENDED, "hints_name_what_helps")),
    ("ChooseRuntime", By(SERVERS, "a_place_for_sockets_that_cannot_be_had")),
    ("ChooseSupportedVersion", By(SERVERS, "a_server_program_that_is_missing_or_unfit")),
    ("ChooseUnprivilegedPort", By(ENDED, "hints_name_what_helps")),
    ("ConnectToServer", By("calve-db/tests/it/elsewhere.rs", "a_command_that_was_never_there_makes_no_template")),
    ("CopyToOnePlace", By(TAKING_OVER, "what_leads_out_is_refused_and_nothing_is_written")),
    ("CorrectCommand", By(TEMPLATES, "a_command_that_fails")),
    ("CreateAccount", By(SERVERS, "what_belongs_to_others_and_accounts_that_are_missing")),
    ("DropStrategy", By(SERVERS, "strategies_that_are_not_there")),
    ("FreeSpace", By(SERVERS, "a_disk_that_is_full_while_building")),
    ("MakeRuntimeRoots", By(SERVERS, "what_belongs_to_others_and_accounts_that_are_missing")),
    ("MoveOption", By("calve-db/tests/it/elsewhere.rs", "a_file_of_options_that_leads_elsewhere_is_refused")),
    ("NameCompleteDirectory", By(TAKING_OVER, "what_is_no_data_directory_is_refused")),
    ("ReadAsOwner", By(ENDED, "a_data_directory_that_cannot_be_read")),
    ("ReadLog", By(ENDED, "a_server_that_ended_by_itself_leaves_its_reason_and_its_log")),
    ("ReadOutput", By(SERVERS, "a_server_that_crashes_at_start")),
    ("RebuildTemplate", By(SERVERS, "a_template_that_is_damaged")),
    ("ReplaceTemplate", By(TEMPLATES, "a_template_is_replaced_by_another_engine_only_on_purpose")),
    ("ShutDownSource", By(TAKING_OVER, "one_that_was_not_shut_down_is_refused")),
    ("StartNewServer", By(TEMPLATES, "a_reset_looks_before_it_gives_anything_up")),
    ("StopServer", By(SERVERS, "two_starts_with_one_name")),
    ("Sweep", Nowhere(RACE)),
    ("WaitForBuild", By(TEMPLATES, "a_template_that_is_being_built")),
];

const BENCH: &[(&str, HintTest)] = &[
    ("Engine", Nowhere("it is one of the engine's, in the words for it")),
    ("Install", By("calve/tests/it/bench_copy/only.rs", "unknown_names_and_names_of_what_cannot_run_are_errors")),
    ("MeasureWarm", By("calve/tests/it/bench_copy/report.rs", "caches_are_emptied_by_root_alone")),
];

const REGISTRY: &str = "calve/tests/it/template_registry.rs";
const DB_REGISTRY: &str = "calve/tests/it/template_registry/databases.rs";
const BAD_REGISTRY: &str = "calve/tests/it/template_registry/bad.rs";

const VOLUMES: &str = "calve/tests/it/volume.rs";
const DAMAGED: &str = "calve/tests/it/volume/damaged.rs";

const VOLUME: &[(&str, HintTest)] = &[
    ("AskDoctor", By(DAMAGED, "an_image_that_is_not_the_volumes_own_is_never_mounted")),
    ("CheckSystem", Nowhere("a failure of the system that has no remedy of its own")),
    ("ChooseAnotherName", By(VOLUMES, "names_sizes_and_places_are_checked")),
    ("ChooseEmptyMountPoint", By(VOLUMES, "names_sizes_and_places_are_checked")),
    ("CorrectName", By(VOLUMES, "names_sizes_and_places_are_checked")),
    ("Detach", By(VOLUMES, "a_volume_is_made_used_and_removed")),
    ("EndProcesses", By(VOLUMES, "a_volume_in_use_stays_attached")),
    ("FreeSpaceOrNameSmallerSize", By(VOLUMES, "names_sizes_and_places_are_checked")),
    ("InstallProgram", Nowhere("the program would have to be taken away from everybody on the machine")),
    ("ListVolumes", By(VOLUMES, "names_sizes_and_places_are_checked")),
    ("MakeSparse", By(VOLUMES, "where_no_room_can_be_kept_a_volume_must_be_sparse")),
    ("MoveAway", By(DAMAGED, "what_was_not_made_with_the_volume_is_not_deleted")),
    ("NameLargerSize", By(VOLUMES, "names_sizes_and_places_are_checked")),
    ("RunAsOwner", By(DAMAGED, "root_attaches_nothing_that_another_user_could_choose")),
    ("RunAsRoot", By(VOLUMES, "sudo_that_refuses_changes_nothing")),
    ("ReadKernelLog", Nowhere("each failure of mount that could be made is found out before")),
    ("WaitForDetaching", By(VOLUMES, "somebody_elses_hidden_image_is_told")),
    ("UseAnotherKernel", By(VOLUMES, "without_loop_devices_it_says_so")),
];

const OCI: &[(&str, HintTest)] = &[
    ("AskRegistry", By(BAD_REGISTRY, "a_registry_that_lies_or_fails_publishes_nothing")),
    ("CheckImage", By(BAD_REGISTRY, "a_registry_that_lies_or_fails_publishes_nothing")),
    ("CheckNetwork", By(BAD_REGISTRY, "a_registry_that_lies_or_fails_publishes_nothing")),
    ("CheckSystem", By(BAD_REGISTRY, "an_image_that_is_too_large_is_not_unpacked")),
    ("Core", Nowhere("the remedies of the engine are listed there")),
    ("FreeSpace", By(BAD_REGISTRY, "a_disk_that_fills_up_in_the_middle_leaves_the_version_before")),
    ("LogIn", By(REGISTRY, "credentials_come_from_the_files_of_docker_and_from_helpers")),
    ("PullDatabase", By(DB_REGISTRY, "a_database_is_the_same_after_a_push_and_a_pull")),
    ("PullFiles", By(DB_REGISTRY, "a_database_is_the_same_after_a_push_and_a_pull")),
    ("PushWithKey", By(REGISTRY, "the_tag_comes_from_the_contents_of_files")),
    ("NameImage", By(BAD_REGISTRY, "what_is_no_image_is_told_before_anything_is_asked")),
    ("PullUnderAnotherName", By(REGISTRY, "a_pull_replaces_only_what_was_pulled_from_there")),
    ("PushTemplate", By(BAD_REGISTRY, "a_registry_that_lies_or_fails_publishes_nothing")),
    ("RemakeSmaller", By(DB_REGISTRY, "data_that_cannot_travel_are_refused_before_anything_is_sent")),
    ("RemakeWithoutEntry", By(DB_REGISTRY, "data_that_cannot_travel_are_refused_before_anything_is_sent")),
    ("TryLater", By(BAD_REGISTRY, "a_registry_that_lies_or_fails_publishes_nothing")),
    ("UseEncryption", By(BAD_REGISTRY, "what_is_no_image_is_told_before_anything_is_asked")),
];

/// Returns the variants of an enum in a file below `crates`, by its source.
fn variants(file: &str, name: &str) -> BTreeSet<String> {
    let text = fs_err::read_to_string(crates().join(file)).unwrap();
    let (_, body) = text.split_once(name).unwrap_or_else(|| panic!("{file} has no `{name}`"));
    let body = body.split_once("\n}").unwrap().0;
    let lines = body.lines().map(str::trim).filter(|line| line.starts_with(char::is_uppercase));
    let word = |line: &str| line.chars().take_while(|c| c.is_alphanumeric()).collect();
    lines.map(word).collect()
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// The words of each remedy, as they stand in the source of the program: the longest piece without a value in it.
fn words(files: &[&str], name: &str) -> BTreeMap<String, String> {
    let mut words = BTreeMap::new();
    for file in files {
        let text = fs_err::read_to_string(crates().join("calve/src/wording").join(file)).unwrap();
        for arm in joined(&text).split(name).skip(1) {
            let remedy: String = arm.chars().take_while(|c| c.is_alphanumeric()).collect();
            let literal = arm.split('"').nth(1).unwrap_or_default().replace("{}", "{").replace('}', "{");
            if let Some(longest) = literal.split('{').max_by_key(|piece| piece.len()) {
                words.entry(remedy).or_insert(longest.trim().to_owned());
            }
        }
    }
    words
}

/// The source with each string in one line.
fn joined(source: &str) -> String {
    let mut lines = source.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |joined, line| joined + line.trim_start()).replace("\\\"", "'")
}

fn in_json(remedy: &str) -> String {
    remedy.chars().enumerate().fold(String::new(), |mut name, (at, c)| {
        if c.is_uppercase() && at > 0 {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
        name
    })
}

/// Returns whether a test asserts the remedy: by its words, its name, or its name in JSON.
fn asserts(test: &str, remedy: &str, words: &BTreeMap<String, String>) -> bool {
    let in_json = in_json(remedy);
    let is_named =
        test.split(&format!("Remedy::{remedy}")).skip(1).any(|rest| !rest.starts_with(char::is_alphanumeric));
    let is_worded = words.get(remedy).is_some_and(|words| words.len() > 8 && joined(test).contains(words.as_str()));
    is_named || is_worded || test.contains(&format!("\"{in_json}\""))
}

fn assert_listed(
    all: &BTreeSet<String>,
    made_here: &BTreeSet<String>,
    elsewhere: &[(&str, HintTest)],
    words: &BTreeMap<String, String>,
) {
    let mut not_asserted = Vec::new();
    for (remedy, shown) in elsewhere {
        assert!(all.contains(*remedy), "there is no remedy `{remedy}`");
        assert!(!made_here.contains(*remedy), "the situation of `{remedy}` is listed twice");
        match shown {
            By(file, test) => {
                let text = fs_err::read_to_string(crates().join(file)).unwrap();
                let (before, rest) =
                    text.split_once(&format!("\nfn {test}()")).unwrap_or_else(|| panic!("{file} has no test `{test}`"));
                let mut attributes = before.lines().rev().take_while(|line| line.starts_with("#["));
                assert!(attributes.any(|line| line == "#[test]"), "{file}: `{test}` is no test");
                if !asserts(rest.split_once("\n}\n").map_or(rest, |(body, _)| body), remedy, words) {
                    not_asserted.push(format!("{remedy} ({:?}): {file} {test}", words.get(*remedy)));
                }
            }
            Nowhere(reason) => assert!(!reason.is_empty()),
        }
    }
    assert!(not_asserted.is_empty(), "tests that do not assert the remedy that they stand for: {not_asserted:#?}");
    let listed = made_here.iter().map(String::as_str).chain(elsewhere.iter().map(|(remedy, _)| *remedy));
    let listed: BTreeSet<_> = listed.collect();
    let missing: Vec<_> = all.iter().filter(|remedy| !listed.contains(remedy.as_str())).collect();
    assert!(missing.is_empty(), "no test makes the situations of these remedies: {missing:?}");
}

fn remedies(cases: &[Case]) -> BTreeSet<String> {
    cases.iter().map(|case| case.remedy.to_owned()).collect()
}

/// The remedies of databases for which the packages leave the program's hint as it is.
#[rustfmt::skip]
const PROGRAMS_WORDS: [&str; 21] = [
    // A command with its arguments, which no function of the packages stands for.
    "CreateTemplate", "RebuildTemplate", "RemoveVolumes", "ReadLog", "CheckRuntime", "PullImage",
    // Errors of commands that the packages do not run: those that make templates,
    "ReplaceTemplate", "NameEngine", "NameOneSource", "CorrectCommand", "ConnectToServer", "DropStrategy",
    "ShutDownSource", "NameCompleteDirectory", "CopyToOnePlace", "ReadAsOwner",
    // those that run a command beside a server,
    "MoveOption",
    // and those of services of worktrees.
    "ForceStop", "ForceRemoval", "ChooseProgramTemplate", "StartThrowaway",
];

/// The packages word the remedies of databases themselves, by their names, and those of the engine that are about options of clones.
#[test]
fn the_packages_word_the_remedies_of_databases() {
    let mut all = variants("calve-db/src/remedy.rs", "pub enum Remedy {");
    assert!(all.remove("Engine") && PROGRAMS_WORDS.iter().all(|name| all.remove(*name)));
    all.extend(["RaiseOpenFiles", "FreeMemory", "RaiseProcesses"].map(String::from));
    let all: BTreeSet<String> = all.iter().map(|name| in_json(name)).collect();
    for (file, quote) in [("node/src/remedies.ts", ""), ("python/calve/_remedies.py", "\"")] {
        let text = fs_err::read_to_string(crates().join("..").join(file)).unwrap();
        let (_, table) = text.split_once("DATABASE_REMEDIES").unwrap();
        let keys = table.lines().filter_map(|line| {
            let (key, words) = line.trim_start().split_once(&format!("{quote}: "))?;
            words.ends_with(',').then(|| key.trim_start_matches('"').to_owned())
        });
        let keys: BTreeSet<String> = keys.collect();
        assert_eq!(keys, all, "{file}");
    }
}

#[test]
fn every_remedy_has_its_situation() {
    let engine = variants("calve-core/src/remedy.rs", "pub enum Remedy {");
    assert_eq!(engine.len(), calve_core::Remedy::NAMES.len());
    let of_core = words(&["core.rs"], "Remedy::");
    assert_listed(&engine, &remedies(core::CASES), CORE, &of_core);
    let mut of_git = variants("calve-git/src/remedy.rs", "pub enum Remedy {");
    of_git.extend(variants("calve-git/src/transfer_failure.rs", "pub enum TransferFailure {"));
    let mut git_words = words(&["git.rs"], "Remedy::");
    git_words.extend(words(&["git.rs"], "TransferFailure::"));
    assert_listed(&of_git, &remedies(git::CASES), GIT, &git_words);
    for (crate_name, cases, elsewhere) in [
        ("calve-db", db::CASES, DB),
        ("calve-bench", bench::CASES, BENCH),
        ("calve-oci", &[][..], OCI),
        ("calve-volume", &[][..], VOLUME),
    ] {
        let file = format!("{}.rs", crate_name.trim_start_matches("calve-"));
        let all = variants(&format!("{crate_name}/src/remedy.rs"), "pub enum Remedy {");
        assert_listed(&all, &remedies(cases), elsewhere, &words(&[&file], "Remedy::"));
    }
}
