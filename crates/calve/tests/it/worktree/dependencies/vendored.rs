//! Installers into `vendor`: composer, bundler and go.

use std::process::Command;

use serde_json::{Value, json};

use super::{Installer, Packages, Project, npm};

/// The same packages for PHP, and as a proxy of Go's modules.
const MAKE: &str = r#"
import io, json, os, sys, tarfile, zipfile
where = sys.argv[1]
inner = lambda at: 'lib/inner/' if at % 2 else ''
for name in ['p%d' % number for number in range(10)]:
    for version in '1', '2':
        path = '%s/php/%s-%s/' % (where, name, version)
        os.makedirs(path + 'lib/inner')
        with open(path + 'composer.json', 'w') as file:
            json.dump({'name': 'x/' + name, 'version': version + '.0.0'}, file)
        for at in range(20):
            with open('%s%sf%d.php' % (path, inner(at), at), 'w') as file:
                file.write("<?php return '%s %s';\n" % (name, version))
        with tarfile.open(path.rstrip('/') + '.tar', 'w') as archive:
            for one in os.listdir(path):
                archive.add(path + one, one)
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
            archive.writestr(root + 'embedded.go', 'package %s\n\nimport "embed"\n\n//go:embed lib\nvar Lib embed.FS\n' % name)
            archive.writestr(root + 'lib/inner/text.go', version)
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
      FileUtils.mkdir_p('lib/inner')
      files = (0...20).map { |at| "lib/#{'inner/' if at.odd?}f#{at}.rb" }
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
        let directories = json!({ "type": "path", "url": format!("{}/php/p[0-4]-?", self.0.display()), "options": { "symlink": false } });
        let archive = |number: u32| {
            let url = format!("file://{}/php/p{number}-{version}.tar", self.0.display());
            let dist = json!({ "type": "tar", "url": url });
            json!({ "type": "package", "package": { "name": format!("x/p{number}"), "version": format!("{version}.0.0"), "dist": dist } })
        };
        // Composer has packages in the directory of its own files.
        let inside = json!({ "type": "package", "package": { "name": "composer/inside", "version": "1.0.0",
            "dist": { "type": "tar", "url": format!("file://{}/php/p5-1.tar", self.0.display()) } } });
        let from = Vec::from_iter(
            [json!({ "packagist.org": false }), directories, inside].into_iter().chain((5..10).map(archive)),
        );
        let from = Value::from(from);
        vec![(
            "composer.json",
            format!(r#"{{"name":"x/x","repositories":{from},"require":{{{all},"composer/inside":"1.0.0"}}}}"#),
        )]
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
    project.is_interrupted(Some("/x/p0"));
    let main = &project.repo.path;
    project.repo.git(["checkout", "-q", "--detach", "main~1"]);
    let is_current = || project.planned("main~1")["install_needed"] == false;
    // Its list of packages is older than what it has put back, and than what a plugin has written.
    fs_err::remove_dir_all(main.join("vendor/x/p0")).unwrap();
    project.install(main);
    fs_err::write(main.join("vendor/x/p1/configuration"), "").unwrap();
    assert!(is_current());
    fs_err::remove_dir_all(main.join("vendor/composer/inside")).unwrap();
    assert!(!is_current());
    project.install(main);
    assert!(is_current());
    // One that was killed before it wrote this for the first time has not finished.
    fs_err::remove_file(main.join("vendor/autoload.php")).unwrap();
    assert!(!is_current());
}

#[test]
fn bundler_installs_are_compared_with_the_lockfile() {
    let installer = Installer {
        programs: &["bundle", "ruby"],
        lockfile: "Gemfile.lock",
        files: Packages::gemfile,
        install: &["sh", "-c", "export BUNDLE_PATH=vendor/bundle BUNDLE_CLEAN=true; exec bundle install --quiet"],
        command: "bundle install",
        compared: |path| path.ends_with(".rb"),
        ..into_vendor()
    };
    let Some(project) = Project::of(installer) else { return };
    project.is_upgraded();
    project.is_interrupted(Some("/gems/p0-1.0.0"));
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
    project.is_interrupted(Some("/example.com"));
}
