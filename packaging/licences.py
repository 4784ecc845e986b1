"""The licences of the crates that are linked into the program."""
import json
import subprocess
from pathlib import Path

NAMES = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE")


def notices(repo, target):
    """One text: each crate with its licence, then each licence text once, with the crates that have it."""
    packages = linked(repo, target)
    lines = ["Calve contains the Rust standard library (MIT OR Apache-2.0) and these crates:", ""]
    texts = {}
    for package in packages:
        title = f"{package['name']} {package['version']}"
        lines.append(f"  {title}: {package['license']}")
        directory = Path(package["manifest_path"]).parent
        for file in sorted(directory.iterdir()):
            if file.is_file() and file.name.upper().startswith(NAMES):
                text = "\n".join(line.rstrip() for line in file.read_text(encoding="utf-8").strip().splitlines())
                texts.setdefault(text, []).append(title)
    for text, titles in texts.items():
        lines += ["", "-" * 78, ", ".join(titles) + ":", "", text]
    return "\n".join(lines) + "\n"


def linked(repo, target):
    """The packages of other authors that the program for `target` is built from; not those of its tests, macros and build scripts."""
    metadata = json.loads(subprocess.run(
        ["cargo", "metadata", "--format-version=1", "--locked", f"--filter-platform={target}"],
        cwd=repo, check=True, capture_output=True).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = [package["id"] for package in packages.values() if package["name"] == "calve" and package["source"] is None]
    found = set()
    while waiting:
        identity = waiting.pop()
        # What a macro crate and the crates below it do ends when the compiler does.
        if identity not in found and not is_macro(packages[identity]):
            found.add(identity)
            normal = (edge["pkg"] for edge in nodes[identity]["deps"] if any(kind["kind"] is None for kind in edge["dep_kinds"]))
            waiting.extend(normal)
    others = (packages[identity] for identity in found if packages[identity]["source"] is not None)
    return sorted(others, key=lambda package: (package["name"], package["version"]))


def is_macro(package):
    return any("proc-macro" in target["kind"] for target in package["targets"])
