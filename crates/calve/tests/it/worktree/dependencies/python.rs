//! Installers of Python's packages.

use calve_testkit::few_rounds;

use super::{Installer, Packages, Project, npm};

impl Packages {
    fn pyproject(&self, version: u32) -> Vec<(&'static str, String)> {
        let all = self.each(version, ",", |name, _| format!(r#""{name}=={version}""#));
        let wheels = self.0.display();
        vec![(
            "pyproject.toml",
            format!(
                "[project]\nname = \"x\"\nversion = \"1\"\nrequires-python = \">=3.9\"\ndependencies = [{all}]\n[tool.uv]\nno-index = true\n\
                    find-links = [\"{wheels}\"]\n"
            ),
        )]
    }

    /// Only one is upgraded: poetry starts pip for each package that it takes away.
    fn poetry(&self, version: u32) -> Vec<(&'static str, String)> {
        let all = self.each(1, "\n", |name, path| format!(r#"{name} = {{ path = "{path}-py3-none-any.whl" }}"#));
        let all = all.replace("p0-1.0.0", &format!("p0-{version}.0.0"));
        vec![(
            "pyproject.toml",
            format!("[tool.poetry]\npackage-mode = false\n[tool.poetry.dependencies]\npython = \">=3.9\"\n{all}\n"),
        )]
    }

    fn requirements(&self, version: u32) -> Vec<(&'static str, String)> {
        vec![("requirements.txt", self.each(version, "\n", |name, _| format!("{name}=={version}.0 # pinned")))]
    }

    fn pdm(&self, version: u32) -> Vec<(&'static str, String)> {
        let all = self.each(version, ",", |name, _| format!(r#""{name}=={version}""#));
        let source = format!(
            "[[tool.pdm.source]]\nname = \"pypi\"\ntype = \"find_links\"\nurl = \"file://{}\"\n",
            self.0.display()
        );
        vec![(
            "pyproject.toml",
            format!(
                "[project]\nname = \"x\"\nversion = \"1\"\nrequires-python = \">=3.9\"\ndependencies = [{all}]\n[tool.pdm]\n\
                    distribution = false\n{source}"
            ),
        )]
    }

    fn pipfile(&self, version: u32) -> Vec<(&'static str, String)> {
        let all = self.each(version, "\n", |name, _| format!("{name} = \"=={version}.0.0\""));
        let source =
            format!("[[source]]\nname = \"here\"\nverify_ssl = false\nurl = \"file://{}\"\n", self.0.display());
        vec![("Pipfile", format!("{source}[packages]\n{all}\n"))]
    }
}

impl Project {
    /// Not with few rounds: then others stand for this one.
    pub(super) fn of_many(installer: Installer) -> Option<Project> {
        if few_rounds() { None } else { Project::of(installer) }
    }

    /// A package is there, and then it is not. With few rounds that is all for pip, which leaves what uv does.
    #[track_caller]
    fn is_compared(&self) {
        self.is_expected(&self.planned("main"), &self.repo.path, None);
        let installed = self.repo.join(self.installer.directory);
        let package =
            crate::spot::paths_below(&installed).into_iter().find(|path| path.ends_with("p0-1.0.0.dist-info"));
        let package = installed.join(package.unwrap());
        fs_err::rename(&package, package.with_extension("away")).unwrap();
        assert_eq!(self.planned("main")["install_needed"], true);
        fs_err::rename(package.with_extension("away"), &package).unwrap();
    }
}

#[test]
fn uv_installs_are_compared_with_the_lockfile() {
    let installer = Installer {
        programs: &["uv", "python3"],
        directory: ".venv",
        lockfile: "uv.lock",
        files: Packages::pyproject,
        install: &["uv", "sync"],
        command: "uv sync",
        ..npm()
    };
    let Some(project) = Project::of(installer) else { return };
    project.is_upgraded();
    project.is_killed();
    project.is_deleted("/_p0");
}

#[test]
fn installs_of_a_standard_lockfile_are_compared_with_it() {
    let installer = Installer {
        programs: &["uv", "python3"],
        directory: ".venv",
        lockfile: "pylock.toml",
        files: Packages::pyproject,
        install: &[
            "sh",
            "-c",
            "[ -e .venv ] || uv venv -q; uv pip compile -q --format pylock.toml -o pylock.toml pyproject.toml && \
            exec uv pip sync -q pylock.toml",
        ],
        command: "uv pip sync pylock.toml",
        ..npm()
    };
    let Some(project) = Project::of(installer) else { return };
    project.is_compared();
    if !few_rounds() {
        project.is_upgraded();
    }
}

#[test]
fn poetry_installs_are_compared_with_the_lockfile() {
    let installer = Installer {
        programs: &["poetry", "python3"],
        directory: ".venv",
        lockfile: "poetry.lock",
        files: Packages::poetry,
        // An environment of poetry's own making has pip, which takes longer to install than all the rest.
        install: &[
            "sh",
            "-c",
            "[ -e .venv ] || python3 -m venv --without-pip .venv; poetry lock --quiet && poetry install --quiet",
        ],
        command: "poetry install",
        ..npm()
    };
    let Some(project) = Project::of_many(installer) else { return };
    project.is_upgraded();
}

#[test]
fn pip_installs_are_compared_with_the_requirements() {
    let installer = Installer {
        programs: &["python3"],
        directory: ".venv",
        lockfile: "requirements.txt",
        files: Packages::requirements,
        // The interpreter itself: pyenv's stand-in does more after pip, and what is killed there stands in the way of every later one.
        install: &[
            "sh",
            "-c",
            "[ -e .venv ] || python3 -m venv --without-pip .venv; exec \"$(python3 -c 'import sys; print(sys.executable)')\" -m pip --python .venv/bin/python install --no-compile -qr requirements.txt",
        ],
        command: "pip install -r requirements.txt",
        ..npm()
    };
    let Some(project) = Project::of(installer) else { return };
    project.is_compared();
    if !few_rounds() {
        project.is_upgraded();
        project.is_killed();
        project.is_deleted("/_p0");
    }
    for (requirement, is_needed) in [("p0>=1,<2", false), ("p0>=2", true), ("p0~=1.1", true), ("p0!=1.0", true)] {
        project.repo.write("requirements.txt", &format!("{requirement}\n"));
        project.repo.git(["commit", "-qam", requirement]);
        assert_eq!(project.planned("main")["install_needed"], is_needed, "{requirement}");
    }
}

#[test]
fn pdm_installs_are_compared_with_the_lockfile() {
    let installer = Installer {
        programs: &["pdm", "python3"],
        directory: ".venv",
        lockfile: "pdm.lock",
        files: Packages::pdm,
        // Otherwise the environment that it notes would be the main worktree's, also in others.
        install: &[
            "sh",
            "-c",
            "export PDM_CHECK_UPDATE=false PDM_IGNORE_SAVED_PYTHON=1
            [ -e .venv ] || python3 -m venv --without-pip .venv; pdm lock --quiet && exec pdm sync --quiet",
        ],
        command: "pdm sync",
        ..npm()
    };
    let Some(project) = Project::of_many(installer) else { return };
    project.is_upgraded();
    assert_eq!(project.planned("main~1")["install_needed"], false);
    // Killed when it has not yet taken away the old version.
    let site = project.repo.join(".venv/lib");
    let site = site.join(&crate::spot::names(&site)[0]).join("site-packages");
    fs_err::create_dir(site.join("p0-3.0.0.dist-info")).unwrap();
    fs_err::write(site.join("p0-3.0.0.dist-info/INSTALLER"), "pdm").unwrap();
    assert_eq!(project.planned("main~1")["install_needed"], true);
}

#[test]
fn pipenv_installs_are_compared_with_the_lockfile() {
    let installer = Installer {
        programs: &["pipenv", "python3"],
        directory: ".venv",
        lockfile: "Pipfile.lock",
        files: Packages::pipfile,
        install: &[
            "sh",
            "-c",
            "export PIPENV_VENV_IN_PROJECT=1 PIPENV_NOSPIN=1
            [ -e .venv ] || python3 -m venv --without-pip .venv; pipenv lock --quiet && exec pipenv sync --quiet",
        ],
        command: "pipenv sync",
        ..npm()
    };
    let Some(project) = Project::of_many(installer) else { return };
    // It installs by pip, which another test kills.
    project.is_upgraded();
}
