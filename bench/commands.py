"""What is compared: the programs, their commands on each file system, and the ratios that Calve must reach."""
from dataclasses import dataclass

# name: what `cargo install` needs. cp and rm are of GNU coreutils.
PEERS = {"cpz": "cpz@3.2.1", "rmz": "rmz@3.2.1", "xcp": "xcp@0.24.9"}

REFLINK_FILE_SYSTEMS = ("xfs", "btrfs")


@dataclass(frozen=True)
class Command:
    section: str  # copy (which `calve bench copy` measures), snapshot, remove
    text: str  # as a user would type it, with SRC, DST or TREE for the places
    repeat: int = 1  # times in each round

    @property
    def label(self):
        """The text without the places: how the command is named in tables."""
        return " ".join(word for word in self.text.split() if word not in ("SRC", "SRC/", "DST", "TREE"))

    @property
    def program(self):
        return self.text.split()[0]

    @property
    def side(self):
        """As `calve bench copy` names it: calve or peer."""
        return "calve" if self.program == "calve" else "peer"


# As `calve bench copy` names them.
CP_REFLINK = Command("copy", "cp -a --reflink=always SRC DST")
CP = Command("copy", "cp -a SRC DST")
CPZ = Command("copy", "cpz SRC DST")
CALVE = Command("copy", "calve cp SRC DST")

BTRFS_SNAPSHOT = Command("snapshot", "btrfs subvolume snapshot SRC DST", repeat=5)
CALVE_SNAPSHOT = Command("snapshot", "calve cp SRC DST", repeat=5)
CALVE_RM = Command("remove", "calve rm TREE")
CALVE_RM_WAIT = Command("remove", "calve rm --wait TREE")
RMZ = Command("remove", "rmz TREE")
RM = Command("remove", "rm -rf TREE")

# The command that the others of its section are compared with.
REFERENCES = {"snapshot": BTRFS_SNAPSHOT, "remove": RMZ}
SECTIONS = {"copy": "Copy the tree", "snapshot": "Clone a btrfs subvolume", "remove": "Remove the tree"}


def commands_on(fs, sections):
    """Those that are measured here and not by `calve bench copy`."""
    commands = [CALVE_RM, CALVE_RM_WAIT, RMZ, RM]
    if fs == "btrfs":
        commands = [BTRFS_SNAPSHOT, CALVE_SNAPSHOT, *commands]
    return [command for command in commands if command.section in sections]


@dataclass(frozen=True)
class Target:
    fs: str
    command: Command
    limit: float
    against: Command | None = None  # None: the limit is in seconds

    @property
    def text(self):
        if self.against is None:
            return f"{self.fs}: `{self.command.label}` below {self.limit * 1000:.0f} ms"
        return f"{self.fs}: `{self.command.label}` at most {self.limit:.2f} of `{self.against.label}`"


TARGETS = [
    Target("xfs", CALVE, 0.50, CP_REFLINK),
    Target("xfs", CALVE, 1.00, CPZ),
    Target("btrfs", CALVE, 0.60, CP_REFLINK),
    Target("btrfs", CALVE, 1.10, CPZ),
    Target("ext4", CALVE, 0.55, CP),
    Target("ext4", CALVE, 1.05, CPZ),
    Target("btrfs", CALVE_SNAPSHOT, 1.50, BTRFS_SNAPSHOT),
    *(Target(fs, CALVE_RM, 0.010) for fs in ("ext4", "xfs", "btrfs")),
    *(Target(fs, CALVE_RM_WAIT, 1.05, RMZ) for fs in ("ext4", "xfs", "btrfs")),
]
