//! A build directory of CMake, with both of its usual generators.

use super::Project;

fn check(generator: &'static str, program: &'static str) {
    let make = move |project: &Project| {
        project
            .tree()
            .file("CMakeLists.txt", b"cmake_minimum_required(VERSION 3.10)\nproject(p NONE)\noption(CHOSEN \"\" OFF)\nadd_custom_target(all_of_it ALL COMMAND ${CMAKE_COMMAND} -E echo building ${CMAKE_SOURCE_DIR} ${CHOSEN})\n")
            .file(".gitignore", b"build\n");
        project.run(&project.main(), "cmake", ["-S", ".", "-B", "build", "-G", generator, "-DCHOSEN=yes"]);
        project.run(&project.main(), "cmake", ["--build", "build"]);
    };
    Project::each(&["cmake", program], make, |project, new| {
        let first = project.run(new, "cmake", ["build"]);
        assert!(first.contains(&format!("written to: {}/build", new.display())), "{first}");
        let built = project.run(new, "cmake", ["--build", "build"]);
        // The option that was chosen is still there.
        assert!(built.contains(&format!("building {} yes", new.display())), "{built}");
    });
}

#[test]
fn a_build_with_make_is_of_the_new_tree() {
    check("Unix Makefiles", "make");
}

#[test]
fn a_build_with_ninja_is_of_the_new_tree() {
    check("Ninja", "ninja");
}
