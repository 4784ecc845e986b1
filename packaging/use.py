"""What the installed wheel must do on every platform. Run in a directory of its own."""

import os
import subprocess
import sys

import calve

before = sorted(os.listdir("."))
os.makedirs("tree/a")
for name, contents in (("tree/a/b", b"one"), ("tree/c", bytes(9000))):
    with open(name, "wb") as file:
        file.write(contents)
clone = calve.clone_tree("tree", "clone")
assert clone["entries"]["files"] == 2, clone
with open("clone/a/b", "wb") as file:
    file.write(b"two")
assert open("tree/a/b", "rb").read() == b"one"
try:
    calve.clone_tree("none", "clone2")
    raise AssertionError("what is missing was cloned")
except FileNotFoundError as error:
    assert error.code == "ERR_CALVE_MISSING", error.code
assert any(one["available"] for one in calve.probe("tree", ".")["strategies"])
assert calve.write_files("clone", {"d/e": "three", "f": bytes(9000)}, mkdir=True)["files"] == 2
assert [contents for _, contents in calve.read_files(["clone/d/e"])] == [b"three"]
said = subprocess.run([sys.executable, "-m", "calve", "--version"], stdout=subprocess.PIPE, universal_newlines=True, check=True).stdout
assert said.split() == ["calve", calve.__version__], said
for name in ("clone", "tree"):
    calve.remove_tree(name, wait=True)
assert sorted(os.listdir(".")) == before
print(f"PyPI: {sys.platform}, Python {sys.version.split()[0]}, cloned by {clone['strategy']}")
