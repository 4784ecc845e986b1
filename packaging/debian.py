#!/usr/bin/env python3
"""Make a Debian package of a program that is linked with an old glibc.

usage: packaging/debian.py TARGET PROGRAM DIRECTORY [HOST_PROGRAM]

The package `calve_VERSION_ARCHITECTURE.deb` goes into DIRECTORY. Needs dpkg-deb. HOST_PROGRAM prints the completions and manual
pages, where PROGRAM cannot run on this machine.
"""
import gzip
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import contents

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
CONTROL = """\
Package: calve
Version: {version}
Architecture: {architecture}
Maintainer: The Calve contributors <calve@repository.invalid>
Installed-Size: {kibibytes}
Depends: libc6 (>= 2.17)
Section: utils
Priority: optional
Homepage: {repository}
Description: {description}
 Clones files and directories by the fastest method that two places really
 offer: a file system snapshot, shared extents (reflinks), or a parallel copy.
 It says which one it was, and why not a faster one.
"""


def main():
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    target, program, directory = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    architecture = ARCHITECTURES[target.split("-")[0]]
    files = installed(target, program, Path(sys.argv[4]) if len(sys.argv) == 5 else program)
    kibibytes = sum(len(data) // 1024 + 1 for data in files.values())
    control = CONTROL.format(version=contents.version(), architecture=architecture, kibibytes=kibibytes,
                             repository=contents.repository(), description=contents.workspace()["description"])
    package = directory / f"calve_{contents.version()}_{architecture}.deb"
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as tree:
        for name, data in (files | {"DEBIAN/control": control.encode()}).items():
            path = Path(tree) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.chmod(0o755 if name == "usr/bin/calve" else 0o644)
        for path in [Path(tree), *Path(tree).rglob("*")]:
            if path.is_dir():
                path.chmod(0o755)
        # xz: a dpkg before Debian 12 does not know zstd.
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", tree, package], check=True, stdout=subprocess.DEVNULL,
                       env=os.environ | {"SOURCE_DATE_EPOCH": str(contents.epoch())})
    print(package)


def installed(target, program, host_program):
    """Path and bytes of what the package installs."""
    documents = contents.documents(target)
    completions = contents.completions(host_program)
    copyright_ = b"\n".join(documents[name] for name in ("LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY.txt"))
    share = "usr/share"
    files = {
        "usr/bin/calve": program.read_bytes(),
        f"{share}/doc/calve/README.md": documents["README.md"],
        f"{share}/doc/calve/changelog.gz": gzip.compress(documents["CHANGELOG.md"], mtime=0),
        f"{share}/doc/calve/copyright": copyright_,
        f"{share}/bash-completion/completions/calve": completions["calve.bash"],
        f"{share}/zsh/vendor-completions/_calve": completions["_calve"],
        f"{share}/fish/vendor_completions.d/calve.fish": completions["calve.fish"],
    }
    for name, page in contents.manual(host_program).items():
        files[f"{share}/man/man1/{name}.gz"] = gzip.compress(page, mtime=0)
    return files


if __name__ == "__main__":
    main()
