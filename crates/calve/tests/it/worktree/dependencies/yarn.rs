//! yarn 1, and the later versions with their linker for `node_modules`.

use super::{Installer, Packages, Project, npm};

pub(super) fn yarn() -> Installer {
    Installer {
        programs: &["node", "yarn", "python3"],
        lockfile: "yarn.lock",
        install: &["yarn", "install", "--offline", "--cache-folder=PACKAGES/cache"],
        command: "yarn install --frozen-lockfile",
        ..npm()
    }
}

#[test]
fn yarn_installs_are_compared_with_the_lockfile() {
    let Some(project) = Project::of(yarn()) else { return };
    project.is_upgraded();
    project.is_interrupted(None);
}

impl Packages {
    fn of_berry(&self, version: u32) -> Vec<(&'static str, String)> {
        let mut files = self.of_registry(version);
        let url = fs_err::read_to_string(self.0.join("url")).unwrap();
        let settings = "nodeLinker: node-modules\nenableTelemetry: false\nunsafeHttpWhitelist: [127.0.0.1]\nnpmMinimalAgeGate: 0\nnpmRegistryServer";
        files.push((".yarnrc.yml", format!("{settings}: {url}\nglobalFolder: {}/berry\n", self.0.display())));
        files
    }
}

#[test]
fn installs_of_later_yarns_are_compared_with_the_lockfile() {
    let installer = Installer {
        programs: &["node", "yarn-berry", "python3"],
        files: Packages::of_berry,
        install: &["yarn-berry", "install", "--no-immutable"],
        needs_registry: true,
        ..yarn()
    };
    let Some(project) = Project::of_many(installer) else { return };
    project.is_upgraded();
    project.is_interrupted(None);
}
