"""What a machine may lack: a skip is told by name in the file CALVE_SKIP_LOG, and is a failure where CI is set."""

import os
import shutil
import subprocess

import pytest


def lacks(request, reason):
    assert not os.environ.get("CI"), f"must not be skipped in CI: {request.node.name}: {reason}"
    if log := os.environ.get("CALVE_SKIP_LOG"):
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"skipped: {request.node.nodeid}: {reason}\n")
    pytest.skip(reason)


def need_root(request):
    if os.geteuid() != 0:
        lacks(request, "only root can mount")


@pytest.fixture
def needs(request):
    """Skips the test if a program is missing."""

    def need(program):
        if shutil.which(program) is None:
            lacks(request, f"{program} is not installed")

    return need


def unmount(place):
    # The system closes what an ended thread or process had open a moment after it is told to have ended.
    script = 'n=0; until umount "$0"; do n=$((n + 1)); [ "$n" -lt 300 ] || exit 1; sleep 0.1; done'
    subprocess.run(["sh", "-c", script, place], check=True)


@pytest.fixture
def small_disk(request, tmp_path):
    """Mounts a small tmpfs at a new directory; its options are given."""
    mounted = []

    def mount(options):
        need_root(request)
        place = tmp_path / f"disk{len(mounted)}"
        place.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], check=True)
        mounted.append(place)
        return place

    yield mount
    for place in mounted:
        unmount(place)


@pytest.fixture
def ext4(request, tmp_path):
    """A directory with a small ext4 mounted at it."""
    need_root(request)
    place, image = tmp_path / "ext4", tmp_path / "ext4.img"
    place.mkdir()
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    path = {**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True, env=path)
    subprocess.run(["mount", "-o", "loop", image, place], check=True)
    yield place
    unmount(place)
    image.unlink()
