//! Dependencies that real installers have installed, in worktrees whose lockfile asks for others: after an upgrade that was merged and not
//! installed, and after an installer that was killed.

mod python;
mod vendored;
mod workspaces;
mod yarn;

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use calve_testkit::{SplitMix64, few_rounds, matrix, require_program, rounds};
use serde_json::{Value, json};

use super::repo::{Repo, git, with_environment, write};
use crate::program::calve;

/// An installer, and a project for it. `VERSION` in texts stands for 1 or 2, and `PACKAGES` for the directory with the packages.
struct Installer {
    programs: &'static [&'static str],
    directory: &'static str,
    lockfile: &'static str,
    /// The files of the project, as they are with all packages in one version.
    files: fn(&Packages, u32) -> Vec<(&'static str, String)>,
    /// Makes the lockfile, and installs what it names.
    install: &'static [&'static str],
    /// The command that Calve names.
    command: &'static str,
    /// It takes packages from a registry only.
    needs_registry: bool,
    /// The files by which a whole installation is told from a half one.
    compared: fn(&str) -> bool,
}

/// Ten packages in two versions each, `p0` to `p9`, as tarballs for node and as wheels for Python.
struct Packages(PathBuf);

const MAKE: &str = r#"
import io, json, os, sys, tarfile, zipfile
where = sys.argv[1]
inner = lambda at: 'lib/inner/' if at % 2 else ''
for name in ['p%d' % number for number in range(10)]:
    for version in '1', '2':
        with tarfile.open('%s/%s-%s.0.0.tgz' % (where, name, version), 'w:gz') as archive:
            files = {'package.json': json.dumps({'name': name, 'version': version + '.0.0', 'main': 'f0.js'})}
            files.update({inner(at) + 'f%d.js' % at: 'module.exports = "%s %s"\n' % (name, version) for at in range(20)})
            for path, text in files.items():
                entry = tarfile.TarInfo('package/' + path)
                entry.size, entry.mode = len(text), 0o644
                archive.addfile(entry, io.BytesIO(text.encode()))
        info = '%s-%s.0.0.dist-info/' % (name, version)
        files = {'%s/%sf%d.py' % (name, inner(at), at): 'version = "%s"\n' % version for at in range(20)}
        files['_%s/__init__.py' % name] = 'version = "%s"\n' % version
        files[name + '/__init__.py'] = ''
        files[info + 'METADATA'] = 'Metadata-Version: 2.1\nName: %s\nVersion: %s.0.0\n' % (name, version)
        files[info + 'WHEEL'] = 'Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n'
        files[info + 'RECORD'] = ''.join(path + ',,\n' for path in list(files) + [info + 'RECORD'])
        with zipfile.ZipFile('%s/%s-%s.0.0-py3-none-any.whl' % (where, name, version), 'w') as archive:
            for path, text in files.items():
                archive.writestr(path, text)
"#;

impl Packages {
    fn make(at: PathBuf) -> Packages {
        fs_err::create_dir(&at).unwrap();
        let made = Command::new("python3").args(["-c", MAKE]).arg(&at).status().unwrap();
        assert!(made.success());
        Packages(at)
    }

    /// Writes something for every package, with these words in between.
    fn each(&self, version: u32, between: &str, text: impl Fn(&str, &str) -> String) -> String {
        let one = |number| text(&format!("p{number}"), &format!("{}/p{number}-{version}.0.0", self.0.display()));
        (0..10).map(one).collect::<Vec<_>>().join(between)
    }

    fn package_json(&self, version: u32) -> Vec<(&'static str, String)> {
        let all = self.each(version, ",", |name, path| format!(r#""{name}":"file:{path}.tgz""#));
        vec![("package.json", format!(r#"{{"name":"x","version":"1.0.0","private":true,"dependencies":{{{all}}}}}"#))]
    }

    fn of_registry(&self, version: u32) -> Vec<(&'static str, String)> {
        let all = self.each(version, ",", |name, _| format!(r#""{name}":"{version}.0.0""#));
        let url = fs_err::read_to_string(self.0.join("url")).unwrap();
        vec![
            ("package.json", format!(r#"{{"name":"x","version":"1.0.0","private":true,"dependencies":{{{all}}}}}"#)),
            ("bunfig.toml", format!("[install]\nregistry = \"{url}\"\n")),
        ]
    }
}

/// A registry of the packages, on this machine.
struct Registry(Child);

impl Registry {
    fn serve(packages: &Packages) -> Registry {
        let mut server = Command::new("python3");
        server.args(["-u", "-m", "http.server", "--bind", "127.0.0.1", "0"]).current_dir(&packages.0);
        let mut server = server.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut said).unwrap();
        let port = said.split_whitespace().skip_while(|word| *word != "port").nth(1).unwrap();
        let url = format!("http://127.0.0.1:{port}");
        for number in 0..10 {
            let name = format!("p{number}");
            let version = |version: u32| json!({ "name": name, "version": format!("{version}.0.0"), "dist": { "tarball": format!("{url}/{name}-{version}.0.0.tgz") } });
            let text = json!({ "name": name, "dist-tags": { "latest": "2.0.0" }, "versions": { "1.0.0": version(1), "2.0.0": version(2) } });
            fs_err::write(packages.0.join(&name), text.to_string()).unwrap();
        }
        fs_err::write(packages.0.join("url"), url).unwrap();
        Registry(server)
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A repository with a project.
struct Project {
    repo: Repo,
    packages: Packages,
    installer: Installer,
    _registry: Option<Registry>,
}

impl Project {
    /// The first version is installed in the main worktree. `None` without the installer.
    fn of(installer: Installer) -> Option<Project> {
        if !installer.programs.iter().all(|program| require_program(program)) {
            return None;
        }
        let repo = Repo::anywhere();
        for made in ["node_modules", "target"] {
            fs_err::remove_dir_all(repo.join(made)).unwrap();
        }
        repo.write(".gitignore", "node_modules/\n.venv/\nvendor/\n.pdm-python\n.yarn/\n");
        fs_err::remove_file(repo.join("package-lock.json")).unwrap();
        let packages = Packages::make(repo.spot.join("packages"));
        let registry = installer.needs_registry.then(|| Registry::serve(&packages));
        let project = Project { repo, packages, installer, _registry: registry };
        project.change(&project.repo.path, 1);
        project.install(&project.repo.path);
        project.repo.commit("version 1");
        Some(project)
    }

    fn change(&self, worktree: &Path, version: u32) {
        for (name, text) in (self.installer.files)(&self.packages, version) {
            write(&worktree.join(name), &text);
        }
    }

    fn installing(&self, worktree: &Path) -> Command {
        let path = |name: &str| self.repo.spot.join(name);
        let packages = self.packages.0.display().to_string();
        let mut words = self.installer.install.iter().map(|word| word.replace("PACKAGES", &packages));
        let mut command = Command::new(words.next().unwrap());
        command.args(words).current_dir(worktree).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        command.env("HOME", path("home")).env("npm_config_cache", path("npm")).env("npm_config_offline", "true");
        command.env("UV_CACHE_DIR", path("uv")).env("UV_OFFLINE", "1").env("UV_PYTHON_DOWNLOADS", "never");
        command.env("PIP_NO_INDEX", "1").env("PIP_FIND_LINKS", packages).env("PIP_DISABLE_PIP_VERSION_CHECK", "1");
        command.env("POETRY_VIRTUALENVS_IN_PROJECT", "1").env("POETRY_CACHE_DIR", path("poetry"));
        for inherited in ["VIRTUAL_ENV", "PYTHONPATH", "CI", "UV_INDEX_URL", "UV_FIND_LINKS", "PYTHONDONTWRITEBYTECODE"]
        {
            command.env_remove(inherited);
        }
        command
    }

    #[track_caller]
    fn install(&self, worktree: &Path) {
        let mut command = self.installing(worktree);
        let output = command.output().unwrap();
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{command:?}: {stdout}\n{stderr}");
    }

    /// Returns what a new worktree at a commit would get.
    #[track_caller]
    fn planned(&self, commit: &str) -> Value {
        let mut planned = self.repo.calve(["add", "-n", "--json", "--detach", commit]).succeeds().json();
        planned["dependencies"][0].take()
    }

    #[track_caller]
    fn is_expected(&self, dependency: &Value, from: &Path, command: Option<&str>) {
        let Installer { directory, lockfile, .. } = self.installer;
        let mut expected =
            json!({ "path": directory, "from": from, "lockfile": lockfile, "install_needed": command.is_some() });
        if let Some(command) = command {
            expected["command"] = command.into();
        }
        assert_eq!(*dependency, expected);
    }

    /// A colleague upgrades, and merges: the main worktree has the new lockfile, and the old packages.
    #[track_caller]
    fn is_upgraded(&self) {
        let Installer { directory, lockfile, command, .. } = self.installer;
        let main = &self.repo.path;
        let up = self.repo.add(["up"]);
        self.is_expected(&self.planned("main"), main, None);
        self.change(&up, 2);
        self.install(&up);
        git(&up, ["commit", "-qam", "version 2"]);
        self.repo.git(["merge", "-q", "up"]);
        // The one with the right packages is taken, and one that was made from it is as good.
        self.is_expected(&self.planned("main"), &up, None);
        let next = self.repo.add(["next"]);
        assert!(self.has(&next.join(directory), &up.join(directory)), "other packages");
        self.repo.calve(["remove", "up"]).succeeds();
        self.is_expected(&self.planned("main"), &next, None);
        self.is_expected(&self.planned("main~1"), main, None);
        self.repo.calve(["remove", "next"]).succeeds();
        self.is_expected(&self.planned("main"), main, Some(command));
        let said = format!("`{directory}` does not fit `{lockfile}`: run `{command}`");
        self.repo.calve(["add", "last"]).succeeds().says(&[&said]);
        self.repo.calve(["remove", "last"]).succeeds();
        // An unreadable lockfile is no reason to fail.
        let large = " ".repeat(50 << 20);
        for text in matrix(["{", "", "\0", "lockfileVersion: 99\n", &large]) {
            self.repo.write(lockfile, text);
            self.repo.git(["commit", "-qam", "unreadable"]);
            assert!(self.planned("main")["install_needed"].is_boolean(), "{text:.9}");
            self.repo.git(["reset", "-q", "--hard", "HEAD~1"]);
        }
    }

    /// Not with few rounds: then pnpm and uv stand for all that are killed, or have begun to delete.
    #[track_caller]
    fn is_interrupted(&self, package: Option<&str>) {
        if !few_rounds() {
            self.is_killed();
            package.into_iter().for_each(|package| self.is_deleted(package));
        }
    }

    /// An installer that changes one version into the other is killed at some moment: whatever is called complete is complete.
    #[track_caller]
    fn is_killed(&self) {
        let main = &self.repo.path;
        let installed = main.join(self.installer.directory);
        let (one, two) = (self.repo.spot.join("one"), self.repo.spot.join("two"));
        copy(&installed, &one);
        let started = Instant::now();
        self.install(main);
        let takes = started.elapsed();
        copy(&installed, &two);
        self.is_expected(&self.planned("main"), main, None);
        let moments = rounds(10) as u32;
        for round in 0..moments {
            copy(&one, &installed);
            let mut child = self.installing(main).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            // Spread over all of the time that it takes, one in each part.
            let part = SplitMix64::new(round.into()).below(100) as u32;
            std::thread::sleep(takes * (100 * round + part) / (100 * moments));
            let killed = Command::new("kill").args(["-9", "--", &format!("-{}", child.id())]).output().unwrap();
            let ended = child.wait().unwrap();
            assert!(killed.status.success() || ended.success());
            for (commit, reference) in [("main~1", &one), ("main", &two)] {
                let planned = self.planned(commit);
                let directory = Path::new(planned["from"].as_str().unwrap()).join(self.installer.directory);
                if planned["install_needed"] == false {
                    assert!(
                        self.has(&directory, reference),
                        "round {round}: half made, and called complete for {commit}"
                    );
                }
            }
        }
        // What it leaves when it has come to nothing yet.
        fs_err::remove_dir_all(&installed).unwrap();
        fs_err::create_dir_all(installed.join("p0")).unwrap();
        assert_eq!(self.planned("main")["install_needed"], true);
    }

    /// An upgrade has begun to delete a package, or has deleted it: the old version is not complete any more.
    #[track_caller]
    fn is_deleted(&self, package: &str) {
        let main = &self.repo.path;
        let (installed, whole) = (main.join(self.installer.directory), self.repo.spot.join("one"));
        copy(&whole, &installed);
        let names = crate::spot::paths_below(&installed);
        let package = names.iter().find(|path| format!("/{path}").ends_with(package)).unwrap();
        // The upgrade has written the lockfile.
        self.repo.git(["checkout", "-q", "main", "--", "."]);
        self.is_expected(&self.planned("main~1"), main, None);
        let mut first = installed.join(package);
        // pnpm deletes all files of a directory before those below.
        if first.join("package.json").exists() {
            first.push("package.json");
        }
        while first.is_dir() && !first.is_symlink() {
            first = fs_err::read_dir(&first).unwrap().next().unwrap().unwrap().path();
        }
        fs_err::remove_file(&first).unwrap();
        assert_eq!(self.planned("main~1")["install_needed"], true, "without {}", first.display());
        copy(&whole, &installed);
        self.is_expected(&self.planned("main~1"), main, None);
        let path = installed.join(package);
        if path.is_symlink() { fs_err::remove_file(path) } else { fs_err::remove_dir_all(path) }.unwrap();
        assert_eq!(self.planned("main~1")["install_needed"], true, "without {package}");
        copy(&whole, &installed);
    }

    /// Returns whether a directory has all files of packages that another one has.
    fn has(&self, directory: &Path, reference: &Path) -> bool {
        let paths = crate::spot::paths_below(reference);
        let files: Vec<&String> = paths.iter().filter(|path| (self.installer.compared)(path)).collect();
        assert!(files.len() >= 10, "{} has no packages", reference.display());
        files.iter().all(|path| fs_err::read(directory.join(path)).ok() == fs_err::read(reference.join(path)).ok())
    }
}

fn copy(from: &Path, to: &Path) {
    let _ = fs_err::remove_dir_all(to);
    super::repo::copy(from, to);
}

fn is_code(path: &str) -> bool {
    path.ends_with(".js") || path.ends_with(".py")
}

fn npm() -> Installer {
    Installer {
        programs: &["node", "npm", "python3"],
        directory: "node_modules",
        lockfile: "package-lock.json",
        files: Packages::package_json,
        install: &["npm", "install", "--no-audit", "--no-fund"],
        command: "npm ci",
        needs_registry: false,
        compared: is_code,
    }
}

#[test]
fn npm_installs_are_compared_with_the_lockfile() {
    let Some(project) = Project::of(npm()) else { return };
    project.is_upgraded();
    project.is_interrupted(None);
}

fn pnpm(install: &'static [&'static str]) -> Installer {
    Installer {
        programs: &["node", "pnpm", "python3"],
        lockfile: "pnpm-lock.yaml",
        install,
        command: "pnpm install --frozen-lockfile",
        ..npm()
    }
}

#[test]
fn pnpm_installs_are_compared_with_the_lockfile() {
    let install = &["pnpm", "install", "--offline", "--no-frozen-lockfile", "--store-dir=PACKAGES/store"];
    let Some(project) = Project::of(pnpm(install)) else { return };
    project.is_upgraded();
    project.is_killed();
    project.is_deleted("/p0");
}

#[test]
fn pnpm_installs_without_links_are_compared_with_the_lockfile() {
    let install = &[
        "pnpm",
        "install",
        "--offline",
        "--no-frozen-lockfile",
        "--store-dir=PACKAGES/store",
        "--config.node-linker=hoisted",
    ];
    let Some(project) = Project::of_many(pnpm(install)) else { return };
    project.is_upgraded();
    project.is_killed();
    project.is_deleted("/p0");
}

#[test]
fn bun_installs_are_compared_with_the_lockfile() {
    let installer = Installer {
        programs: &["bun", "python3"],
        lockfile: "bun.lock",
        files: Packages::of_registry,
        install: &["bun", "install"],
        command: "bun install --frozen-lockfile",
        needs_registry: true,
        // It fills the directory of a package in place, and goes by this file too.
        compared: |path| path.ends_with("/package.json"),
        ..npm()
    };
    let Some(project) = Project::of(installer) else { return };
    project.is_upgraded();
    project.is_interrupted(None);
    // One for another platform needs a package that nothing else needs.
    let url = fs_err::read_to_string(project.packages.0.join("url")).unwrap();
    for (name, about) in [
        ("app", json!({ "optionalDependencies": { "native": "1.0.0" } })),
        ("native", json!({ "os": ["sunos"], "dependencies": { "helper": "1.0.0" } })),
        ("helper", json!({})),
    ] {
        let mut version =
            json!({ "name": name, "version": "1.0.0", "dist": { "tarball": format!("{url}/p0-1.0.0.tgz") } });
        version.as_object_mut().unwrap().extend(about.as_object().unwrap().clone());
        let text = json!({ "name": name, "dist-tags": { "latest": "1.0.0" }, "versions": { "1.0.0": version } });
        fs_err::write(project.packages.0.join(name), text.to_string()).unwrap();
    }
    project.repo.write("package.json", r#"{"name":"x","version":"1.0.0","dependencies":{"app":"1.0.0"}}"#);
    project.install(&project.repo.path);
    project.repo.commit("app");
    assert!(!project.repo.join("node_modules/helper").exists());
    project.is_expected(&project.planned("main"), &project.repo.path, None);
}

fn set_time(repo: &Repo, path: &str, minute: u32) {
    let time = format!("2020-01-01 00:{minute:02}:00");
    assert!(Command::new("touch").args(["-h", "-d", &time]).arg(repo.join(path)).status().unwrap().success());
}

#[test]
fn the_time_decides_where_nothing_else_says() {
    let repo = Repo::anywhere();
    fs_err::remove_file(repo.join("package-lock.json")).unwrap();
    let install_needed = || {
        let plan = repo.calve(["add", "-n", "--json", "--detach", "main"]).succeeds().json();
        plan["dependencies"][0]["install_needed"].as_bool().unwrap()
    };
    // As the installers of these lockfiles leave it: bun, npm 6, one that nobody knows yet, and one that is too large to be read.
    for (lockfile, text) in [
        ("bun.lock", "{}".to_owned()),
        ("package-lock.json", "{\"lockfileVersion\": 1}".to_owned()),
        ("package-lock.json", "{\"lockfileVersion\": 9}".to_owned()),
        ("package-lock.json", " ".repeat(50 * 1024 * 1024)),
    ] {
        repo.write(lockfile, &text);
        repo.commit("lockfile");
        repo.write("node_modules/.package-lock.json", "{}");
        for path in ["node_modules/dep", "node_modules/own", "node_modules"] {
            set_time(&repo, path, 10);
        }
        set_time(&repo, lockfile, 9);
        assert!(!install_needed(), "{lockfile}");
        set_time(&repo, lockfile, 11);
        assert!(install_needed(), "{lockfile}");
        repo.git(["rm", "-q", lockfile]);
    }
    // npm 6 leaves no witness, and later ones always do.
    fs_err::remove_file(repo.join("node_modules/.package-lock.json")).unwrap();
    let old = |name: &str| json!({ "lockfileVersion": 1, "dependencies": { "dep": {}, name: {}, "not": { "optional": true } } });
    for (text, is_current) in [
        (old("own").to_string(), true),
        (old("missing").to_string(), false),
        ("{\"lockfileVersion\": 9}".to_owned(), false),
        ("{".to_owned(), false),
    ] {
        repo.write("package-lock.json", &text);
        repo.commit("lockfile");
        for (path, minute) in [("node_modules", 10), ("package-lock.json", 9)] {
            set_time(&repo, path, minute);
        }
        assert_eq!(install_needed(), !is_current, "{text}");
    }
}

#[test]
fn what_was_merged_and_not_installed_comes_from_the_worktree_where_it_was() {
    for (lockfile, versions) in [
        ("package-lock.json", ["{\"lockfileVersion\":1}", "{\"lockfileVersion\":1,\"v\":2}"]),
        ("bun.lock", ["1", "2"]),
    ] {
        let repo = Repo::anywhere();
        fs_err::remove_file(repo.join("package-lock.json")).unwrap();
        repo.write(lockfile, versions[0]);
        repo.commit("1");
        repo.write("node_modules/v", "1");
        for path in ["node_modules/v", "node_modules/dep", "node_modules/own", "node_modules"] {
            set_time(&repo, path, 1);
        }
        let up = repo.add(["up"]);
        write(&up.join(lockfile), versions[1]);
        write(&up.join("node_modules/v"), "2");
        git(&up, ["commit", "-qam", "2"]);
        repo.git(["merge", "-q", "up"]);
        let next = repo.add(["next"]);
        assert_eq!(fs_err::read_to_string(next.join("node_modules/v")).unwrap(), "2", "{lockfile}");
        for gone in ["next", "up"] {
            repo.calve(["remove", gone]).succeeds();
        }
        let ran = repo.calve(["add", "other"]).succeeds();
        let said = format!("`node_modules` does not fit `{lockfile}`: run `");
        ran.says(&[&said]);
        // So does the hook that completes a worktree of git's.
        let made = repo.spot.join("made");
        repo.git([OsStr::new("worktree"), "add".as_ref(), "-qb".as_ref(), "made".as_ref(), made.as_ref()]);
        with_environment(calve(["hook", "worktree-setup"])).within(&made).succeeds().says(&[&said]);
    }
}

#[test]
fn an_environment_that_was_not_finished_fits_nothing() {
    let repo = Repo::anywhere();
    repo.write(".gitignore", ".venv/\n");
    repo.write("requirements.txt", "django==5\n");
    repo.commit("5");
    repo.write(".venv/v", "5");
    repo.add(["f1"]);
    repo.write("requirements.txt", "django==4\n");
    repo.commit("4");
    repo.calve(["add", "f2", "--base", "f1"])
        .succeeds()
        .says(&["`.venv` does not fit `requirements.txt`: run `pip install -r requirements.txt`"]);
    // Of several files those are named that do not fit, and a line that cannot be judged leaves it to the time.
    repo.write(".venv/pyvenv.cfg", "version = 3.11.7\n");
    for name in ["django-4", "pytest-7", "black-1"] {
        repo.write(&format!(".venv/lib/python3.11/site-packages/{name}.dist-info/INSTALLER"), "pip\n");
    }
    let command = |own: &str, dev: &str| {
        repo.write("requirements.txt", own);
        repo.write("requirements-dev.txt", &format!("-r requirements.txt\n{dev}"));
        repo.write("requirements-lint.txt", "black==1\n");
        repo.git(["add", "."]);
        repo.git(["commit", "-q", "--allow-empty", "-m", "several"]);
        set_time(&repo, "requirements.txt", 1);
        set_time(&repo, "requirements-lint.txt", 1);
        let plan = repo.calve(["add", "-n", "--json", "--detach", "main"]).succeeds().json();
        plan["dependencies"][0]["command"].as_str().map(str::to_owned)
    };
    assert_eq!(command("django==4\n", "pytest==7\n"), None);
    let (own, dev) = ("pip install -r requirements.txt", "pip install -r requirements-dev.txt");
    assert_eq!(command("django==4\n", "pytest==8\n").as_deref(), Some(dev));
    assert_eq!(command("django==5\n", "pytest==7\n").as_deref(), Some(own));
    let both = format!("{own} -r requirements-dev.txt");
    assert_eq!(command("django==5\n", "pytest==8\n"), Some(both));
    // The file is newer than the installation.
    for path in ["", "/pyvenv.cfg", "/lib", "/lib/python3.11/site-packages"] {
        set_time(&repo, &format!(".venv{path}"), 2);
    }
    assert_eq!(command("django==4\n", "-e .\n").as_deref(), Some(dev));
}

#[test]
fn the_lockfile_whose_installer_has_filled_the_directory_counts() {
    let repo = Repo::anywhere();
    let lockfile = |version: u32| {
        json!({ "lockfileVersion": 3, "packages": { "node_modules/dep": { "version": version.to_string() } } })
            .to_string()
    };
    let plan = |words: &[&str]| {
        let arguments = [&["add", "-n", "--json", "--detach", "main"], words].concat();
        let plan = repo.calve(arguments).succeeds().json();
        let one = &plan["dependencies"][0];
        (one["lockfile"].as_str().unwrap().to_owned(), one["install_needed"].as_bool().unwrap())
    };
    repo.write("package-lock.json", &lockfile(1));
    repo.write(
        "yarn.lock",
        "# yarn lockfile v1\n\n\ndep@1:\n  version \"1.0.0\"\n  resolved \"https://h/dep.tgz#1\"\n",
    );
    repo.commit("two lockfiles");
    assert_eq!(plan(&[]), ("package-lock.json".into(), true));
    repo.write("node_modules/.yarn-integrity", "{\"lockfileEntries\": {\"dep@1\": \"https://h/dep.tgz#1\"}}");
    assert_eq!(plan(&[]), ("yarn.lock".into(), false));
    fs_err::remove_file(repo.join("node_modules/.yarn-integrity")).unwrap();
    repo.write("node_modules/.package-lock.json", &lockfile(1));
    assert_eq!(plan(&[]), ("package-lock.json".into(), false));
    // With `--dirty` the new worktree gets the lockfile as it is here.
    repo.write("package-lock.json", &lockfile(2));
    assert_eq!(plan(&[]), ("package-lock.json".into(), false));
    assert_eq!(plan(&["--dirty"]), ("package-lock.json".into(), true));
    // Nothing is read through a link.
    let outside = repo.spot.join("outside");
    fs_err::write(&outside, lockfile(1)).unwrap();
    fs_err::remove_file(repo.join("node_modules/.package-lock.json")).unwrap();
    fs_err::os::unix::fs::symlink(&outside, repo.join("node_modules/.package-lock.json")).unwrap();
    assert_eq!(plan(&[]), ("package-lock.json".into(), true));
}
