#!/usr/bin/env python3
"""Complete a release's directory: installer, Homebrew formula, checksums.

usage: packaging/release.py DIRECTORY

DIRECTORY holds the archives. The formula names those that are there. SHA256SUMS is written last, over everything else.
The address comes from $CALVE_REPOSITORY, such as https://github.com/NAME/calve.
"""
import hashlib
import re
import sys
from pathlib import Path

import contents

HERE = Path(__file__).resolve().parent


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    directory = Path(sys.argv[1])
    sums = {archive.name: sha256(archive) for pattern in ("calve[-_]*", "Test-Calve-*") for archive in sorted(directory.glob(pattern))}
    if not sums:
        sys.exit(f"release: no archive in `{directory}`; run scripts/release/dist")
    if contents.repository().endswith(".invalid/calve"):
        print("release: no address is known: set CALVE_REPOSITORY, else the installer and the formula name one that cannot exist",
              file=sys.stderr)
    words = {"VERSION": contents.version(), "REPOSITORY": contents.repository(), "DESCRIPTION": contents.workspace()["description"]}
    for name, text in (("install.sh", (HERE / "install.sh").read_text()), ("calve.rb", formula(sums))):
        (directory / name).write_text(filled(text, words), newline="\n")
        sums[name] = sha256(directory / name)
    (directory / "install.sh").chmod(0o755)
    lines = (f"{digest}  {name}\n" for name, digest in sorted(sums.items()))
    (directory / "SHA256SUMS").write_text("".join(lines), newline="\n")


def sha256(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


def filled(text, words):
    for word, value in words.items():
        text = text.replace(f"@{word}@", value)
    left = re.search(r"@[A-Z0-9_]+@", text)
    if left:
        sys.exit(f"release: nothing is known for `{left[0]}` in a template")
    return text


def formula(sums):
    """The template with a block for each archive that is there: lines from `#if TARGET` to `#end`."""

    def block(match):
        target, text = match.groups()
        digest = sums.get(f"calve-{target}.tar.gz")
        url = f"@REPOSITORY@/releases/download/v@VERSION@/calve-{target}.tar.gz"
        return "" if digest is None else text.replace("@URL@", url).replace("@SHA256@", digest)

    template = (HERE / "calve.rb.in").read_text()
    return re.sub(r"^ *#if (\S+)\n(.*?)^ *#end\n", block, template, flags=re.MULTILINE | re.DOTALL)


if __name__ == "__main__":
    main()
