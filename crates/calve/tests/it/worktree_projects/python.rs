//! A virtual environment with an editable install.

use std::path::Path;

use super::Project;

/// A build backend of the project's own (PEP 517, PEP 660), so that nothing is fetched. It makes what setuptools makes: a path file,
/// or a finder with the path in it.
const BACKEND: &[u8] = br#"
import base64, hashlib, os, zipfile

def get_requires_for_build_editable(config_settings=None):
    return []

def get_requires_for_build_wheel(config_settings=None):
    return []

FINDER = """
import importlib.util, sys
MAPPING = {'found': %r}
class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name in MAPPING:
            return importlib.util.spec_from_file_location(name, MAPPING[name])
def install():
    sys.meta_path.append(Finder)
"""

def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    here = os.getcwd()
    info = 'mine-1.0.dist-info'
    files = {
        '__editable__.mine-1.0.pth': here + '/src\n',
        '__editable___mine_1_0_finder.py': FINDER % (here + '/other/found.py'),
        '__editable__.found.pth': 'import __editable___mine_1_0_finder; __editable___mine_1_0_finder.install()\n',
        info + '/METADATA': 'Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n',
        info + '/WHEEL': 'Wheel-Version: 1.0\nGenerator: mine\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
        info + '/entry_points.txt': '[console_scripts]\nmine = mine:main\n',
    }
    record = ''
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()
        record += '%s,sha256=%s,%d\n' % (name, digest, len(text.encode()))
    files[info + '/RECORD'] = record + info + '/RECORD,,\n'
    wheel = 'mine-1.0-py3-none-any.whl'
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), 'w') as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return wheel
"#;

fn sources(project: &Project) {
    project
        .tree()
        .file("pyproject.toml", b"[build-system]\nrequires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]\n[project]\nname = \"mine\"\nversion = \"1.0\"\n")
        .file("backend.py", BACKEND)
        .file("src/mine.py", b"import sys\ndef main():\n    print(sys.prefix)\n    print(__file__)\n")
        .file("other/found.py", b"where = __file__\n")
        .file(".gitignore", b".venv\n__pycache__\n");
}

fn installed(project: &Project) {
    sources(project);
    // pip from outside: to install pip itself takes longer than all the rest.
    project.run(&project.main(), "python3", ["-m", "venv", "--without-pip", ".venv"]);
    pip(project, &project.main(), &["install", "--quiet", "--no-build-isolation", "--editable", "."]);
    // Once, so that the finder is compiled, and the compiled one would be taken for current.
    assert_eq!(
        project.run(&project.main(), project.main().join(".venv/bin/mine"), [""; 0]),
        whereabouts(&project.main())
    );
}

/// pip, at work on a tree's own environment.
fn pip(project: &Project, tree: &Path, args: &[&str]) -> String {
    let of_the_tree = ["-m", "pip", "--python", ".venv/bin/python"];
    project.run(tree, "python3", [&of_the_tree[..], args].concat())
}

/// Returns what the program prints: its environment, and its source.
fn whereabouts(tree: &Path) -> String {
    format!("{0}/.venv\n{0}/src/mine.py\n", tree.display())
}

#[test]
fn a_virtual_environment_runs_itself_and_imports_its_own_package() {
    Project::each(&["python3"], installed, |project, new| {
        let bin = new.join(".venv/bin");
        // By its path, by the interpreter, by the name that `activate` gives it, in two shells.
        assert_eq!(project.run(new, bin.join("mine"), [""; 0]), whereabouts(new));
        let imports = "import mine, found, sys; print(sys.prefix); print(mine.__file__); print(found.where)";
        let imported = project.run(new, bin.join("python"), ["-c", imports]);
        assert_eq!(imported, format!("{}{}/other/found.py\n", whereabouts(new), new.display()));
        for shell in ["bash", "zsh", "fish"] {
            if !calve_testkit::require_program(shell) {
                return;
            }
            let activate = if shell == "fish" { "activate.fish" } else { "activate" };
            let line = format!("source .venv/bin/{activate}; mine; printf '%s\\n' \"$VIRTUAL_ENV\"");
            let said = project.run(new, shell, ["-c", &line]);
            assert_eq!(said, format!("{}{}/.venv\n", whereabouts(new), new.display()), "{shell}");
        }
        // pip knows where the package comes from, and takes it out completely.
        let listed = pip(project, new, &["list", "--editable", "--format=json"]);
        assert!(listed.contains(&format!("\"{}\"", new.display())), "{listed}");
        pip(project, new, &["uninstall", "--quiet", "--yes", "mine"]);
        let left = crate::spot::paths_below(new.join(".venv"));
        let left: Vec<_> = left.iter().filter(|path| path.contains("mine")).collect();
        assert!(left.is_empty(), "{left:?}");
        // All that while, the main worktree's was not touched.
        assert_eq!(
            project.run(&project.main(), project.main().join(".venv/bin/mine"), [""; 0]),
            whereabouts(&project.main())
        );
    });
}
