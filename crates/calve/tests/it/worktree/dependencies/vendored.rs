//! Installers into `vendor`: composer, bundler and go.

use std::process::Command;

use super::{Installer, Packages, Project, npm};

/// The same packages for PHP, and as a proxy of Go's modules.
const MAKE: &str = r#"
import io, json, os, sys, zipfile
where = sys.argv[1]
for name in ['p%d' % number for number in range(10)]:
    for version in '1', '2':
        path = '%s/php/%s-%s/' % (where, name, version)
        os.makedirs(path)
        with open(path + 'composer.json', 'w') as file:
            json.dump({'name': 'x/' + name, 'version': version + '.0.0'}, file)
        for at in range(20):
            with open('%sf%d.php' % (path, at), 'w') as file:
                file.write("<?php return '%s %s';\n" % (name, version))
        # https://go.dev/ref/mod#module-proxy; from the second major version on, a path would have that in it.
        module, tag = 'example.com/' + name, 'v1.%s.0' % version
        path = '%s/go/%s/@v/' % (where, module)
        os.makedirs(path, exist_ok=True)
        with open(path + tag + '.info', 'w') as file:
            json.dump({'Version': tag}, file)
        with open(path + tag + '.mod', 'w') as file:
            file.write('module %s\n' % module)
        with open(path + 'list', 'a') as file:
            file.write(tag + '\n')
        with zipfile.ZipFile(path + tag + '.zip', 'w') as archive:
            root = '%s@%s/' % (module, tag)
            archive.writestr(root + 'go.mod', 'module %s\n' % module)
            for at in range(20):
                archive.writestr('%sf%d.go' % (root, at), 'package %s\n\nconst F%d = "%s"\n' % (name, at, version))
"#;

/// The same as gems, with the index of a server.
const MAKE_GEMS: &str = r##"
require 'rubygems/package'
require 'fileutils'
where = ARGV[0] + '/gems'
FileUtils.mkdir_p(where + '/gems')
Dir.chdir(where + '/gems') do
  10.times do |number|
    %w[1 2].each do |version|
      name = "p#{number}"
      FileUtils.mkdir_p('lib')
      files = (0...20).map { |at| "lib/f#{at}.rb" }
      files.each { |file| File.write(file, "NAME = '#{name} #{version}'\n") }
      spec = Gem::Specification.new(name, version + '.0.0') do |made|
        made.summary = made.authors = name
        made.files = files
      end
      Gem::DefaultUserInteraction.use_ui(Gem::SilentUI.new) { Gem::Package.build(spec, true) }
    end
  end
  FileUtils.rm_r('lib')
end
require 'rubygems/indexer'
Gem::DefaultUserInteraction.use_ui(Gem::SilentUI.new) { Gem::Indexer.new(where).generate_index }
"##;

impl Packages {
    /// Makes the packages of this test with a script, the first time.
    fn make_with(&self, program: &str, script: &str, made: &str) {
        if !self.0.join(made).exists() {
            let option = if program == "ruby" { "-e" } else { "-c" };
            let ran = Command::new(program).args([option, script]).arg(&self.0).output().unwrap();
            assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        }
    }

    fn composer_json(&self, version: u32) -> Vec<(&'static str, String)> {
        self.make_with("python3", MAKE, "php");
        let all = self.each(version, ",", |name, _| format!(r#""x/{name}":"{version}.0.0""#));
        let from = format!(
            r#"[{{"packagist.org":false}},{{"type":"path","url":"{}/php/*","options":{{"symlink":false}}}}]"#,
            self.0.display()
        );
        vec![("composer.json", format!(r#"{{"name":"x/x","repositories":{from},"require":{{{all}}}}}"#))]
    }

    fn gemfile(&self, version: u32) -> Vec<(&'static str, String)> {
        self.make_with("ruby", MAKE_GEMS, "gems");
        let all = self.each(version, "\n", |name, _| format!("gem '{name}', '{version}.0.0'"));
        vec![("Gemfile", format!("source 'file://{}/gems'\n{all}\n", self.0.display()))]
    }

    fn go_mod(&self, version: u32) -> Vec<(&'static str, String)> {
        self.make_with("python3", MAKE, "php");
        let all = self.each(version, "\n", |name, _| format!("\texample.com/{name} v1.{version}.0"));
        let imports = self.each(version, "\n", |name, _| format!("\t_ \"example.com/{name}\""));
        vec![
            ("go.mod", format!("module example.com/x\n\ngo 1.19\n\nrequire (\n{all}\n)\n")),
            ("main.go", format!("package main\n\nimport (\n{imports}\n)\n\nfunc main() {{}}\n")),
        ]
    }
}

fn into_vendor() -> Installer {
    Installer { directory: "vendor", ..npm() }
}

#[test]
fn composer_installs_are_compared_with_the_lockfile() {
    let installer = Installer {
        programs: &["composer", "python3"],
        lockfile: "composer.lock",
        files: Packages::composer_json,
        install: &[
            "sh",
            "-c",
            "export COMPOSER_ALLOW_SUPERUSER=1 COMPOSER_DISABLE_NETWORK=1; exec composer update --quiet --no-interaction",
        ],
        command: "composer install",
        // Its own classes have the hash of the lockfile in their names.
        compared: |path| path.ends_with(".php") && path.starts_with("x/"),
        ..into_vendor()
    };
    let Some(project) = Project::of(installer) else { return };
    project.is_upgraded();
    project.is_killed();
}

#[test]
fn bundler_installs_are_compared_with_the_lockfile() {
    let installer = Installer {
        programs: &["bundle", "ruby"],
        lockfile: "Gemfile.lock",
        files: Packages::gemfile,
        install: &["sh", "-c", "export BUNDLE_PATH=vendor/bundle; exec bundle install --quiet"],
        command: "bundle install",
        compared: |path| path.ends_with(".rb"),
        ..into_vendor()
    };
    let Some(project) = Project::of(installer) else { return };
    project.is_upgraded();
    project.is_killed();
}

#[test]
fn go_vendoring_is_compared_with_the_required_modules() {
    let installer = Installer {
        programs: &["go", "python3"],
        lockfile: "go.mod",
        files: Packages::go_mod,
        install: &[
            "sh",
            "-c",
            "export GOPROXY=file://PACKAGES/go GOSUMDB=off GOTOOLCHAIN=local GOFLAGS=-modcacherw GOPATH=PACKAGES/gopath
            go mod tidy && exec go mod vendor",
        ],
        command: "go mod vendor",
        compared: |path| path.ends_with(".go"),
        ..into_vendor()
    };
    let Some(project) = Project::of(installer) else { return };
    project.is_upgraded();
    project.is_killed();
}
