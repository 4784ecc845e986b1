"""What the packages of a release have in common: version, address, and the files beside the program."""
import os
import re
import subprocess
import tempfile
import tomllib
from pathlib import Path

import licences

REPO = Path(__file__).resolve().parent.parent

# In a package as `completions/NAME`.
COMPLETIONS = {"bash": "calve.bash", "zsh": "_calve", "fish": "calve.fish"}
DOCUMENTS = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"]


def workspace():
    return tomllib.loads((REPO / "Cargo.toml").read_text())["workspace"]["package"]


def version():
    return workspace()["version"]


def repository():
    """Where releases are published: $CALVE_REPOSITORY, or Cargo.toml, or a GitHub remote. A name that cannot exist if none is known."""
    named = os.environ.get("CALVE_REPOSITORY") or workspace().get("repository")
    if not named:
        remote = subprocess.run(["git", "-C", REPO, "remote", "get-url", "origin"], capture_output=True, text=True, check=False)
        found = re.fullmatch(r"(?:https://|git@|ssh://git@)github\.com[:/]([\w.-]+/[\w.-]+?)(?:\.git)?/?", remote.stdout.strip())
        named = f"https://github.com/{found[1]}" if found else "https://repository.invalid/calve"
    return named.rstrip("/")


def epoch():
    """The time of every file in a package, so that the same sources give the same bytes."""
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    commit = subprocess.run(["git", "-C", REPO, "log", "-1", "--format=%ct"], capture_output=True, text=True, check=False)
    return int(commit.stdout) if commit.stdout.strip() else 0


def completions(program):
    """Name and text of each completion script. `program` must run on this machine."""
    return {name: subprocess.run([program, "completions", shell], check=True, capture_output=True).stdout
            for shell, name in COMPLETIONS.items()}


def manual(program):
    """Name and text of each manual page. `program` must run on this machine."""
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([program, "__man", directory], check=True)
        return {page.name: page.read_bytes() for page in sorted(Path(directory).iterdir())}


def documents(target):
    """Readme, changes, Calve's licences, and those of what is linked into the program."""
    texts = {name: (REPO / name).read_bytes() for name in DOCUMENTS}
    return texts | {"THIRD-PARTY.txt": licences.notices(REPO, target).encode()}
