"""The results as Markdown: what was run and where, a table per file system, what must be reached, and where Calve loses."""
from statistics import median

from commands import REFERENCES, SECTIONS, TARGETS

LARGE_SPREAD = 0.10


def mad(values):
    middle = median(values)
    return median(abs(value - middle) for value in values)


def duration(seconds):
    return f"{seconds * 1000:.1f} ms" if seconds < 0.1 else f"{seconds:.3f} s"


def markdown(results):
    lines = ["# Calve's bench", "", *_where(results), ""]
    for fs, volume in results["volumes"].items():
        lines += [f"## {fs}", ""]
        if "copy" in volume:
            lines += [f"### {SECTIONS['copy']} ({fs})", "", *_copies(volume["copy"]), ""]
        if volume["rows"]:
            lines += [f"Mounted `{volume['mount_options']}`; a new image for every round.", ""]
        for section in ("snapshot", "remove"):
            rows = [row for row in volume["rows"] if row["section"] == section]
            if rows:
                lines += [f"### {SECTIONS[section]} ({fs})", "", *_table(rows, REFERENCES[section].text), "", *_notes(rows)]
    lines += ["## Must reach", "", *_targets(results), "", "## Where Calve loses", "", *_losses(results), ""]
    if results["warnings"]:
        lines += ["## Warnings", "", *(f"- {warning}" for warning in results["warnings"]), ""]
    return "\n".join(lines)


def _copies(copy):
    """What `calve bench copy` measured: a table for each group of commands whose results are worth the same."""
    groups = dict.fromkeys(result["group"] for result in copy["results"])
    for group in groups:
        yield f"{group[0].upper()}{group[1:]}:"
        yield ""
        yield "| command | median | min | max | ratio | user + sys CPU | disk used |"
        yield "|---|--:|--:|--:|--:|--:|--:|"
        for result in (result for result in copy["results"] if result["group"] == group):
            yield (f"| `{result['command']}` | {duration(result['median'])} | {duration(result['min'])} | {duration(result['max'])} "
                   f"| {result['ratio_to_fastest']:.2f} | {duration(result['user'])} + {duration(result['system'])} "
                   f"| {result['disk_bytes'] / 1e6:.1f} MB |")
        yield ""
    for said in [*(warning["message"] for warning in copy["warnings"]), *copy["conclusions"]]:
        yield f"- {said}"


def _where(results):
    machine, tree = results["machine"], results["tree"]
    yield (f"- Machine: {machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB; Linux {machine['kernel']}; "
           f"loop images on {machine['images_on']}; load average {machine['load_before']} at the start")
    yield (f"- Tree: {tree['kind']}, {tree['files']:,} files, {tree['directories']:,} directories, "
           f"{tree['symlinks']:,} symlinks, {tree['bytes'] / 1e9:.2f} GB")
    yield "- Copies are measured by `calve bench copy` (docs/benchmarks.md), on a new image; what follows is about snapshots and removals"
    yield (f"- Rounds: {results['runs']}, after one that is not counted; all commands take turns within a round, in rotating "
           "order; each run has a new destination")
    yield "- Caches: warm (the source is read just before each round); `sync` before each run, outside of the time"
    yield "- Time: from `posix_spawn` to `wait4`, process start included; CPU from `wait4`"
    yield "- Peak memory and open files: sampled every 5 ms in the round that is not counted; `-` where the command was too short"
    for program, version in results["versions"].items():
        yield f"- {program}: {version}"


def _table(rows, reference_text):
    reference = next((median(row["seconds"]) for row in rows if row["text"] == reference_text and row["seconds"]), None)
    yield "| command | median | min | max | MAD | ratio | user + sys CPU | peak memory | open files |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    for row in sorted(rows, key=lambda row: median(row["seconds"]) if row["seconds"] else float("inf")):
        seconds = row["seconds"]
        if not seconds:
            yield f"| `{row['text']}` | {row['problem']} | | | | | | | |"
            continue
        ratio = f"{median(seconds) / reference:.2f}" if reference else "-"
        yield (f"| `{row['text']}` | {duration(median(seconds))} | {duration(min(seconds))} | {duration(max(seconds))} "
               f"| {duration(mad(seconds))} | {ratio} "
               f"| {duration(median(row['user_seconds']))} + {duration(median(row['system_seconds']))} "
               f"| {_peaks(row['peaks'])} |")
    yield ""
    yield f"Ratio: to `{reference_text}`."


def _peaks(peaks):
    if peaks["samples"] < 3:
        return "- | -"
    return f"{peaks['memory_kib'] / 1024:.1f} MiB | {peaks['open_files']}"


def _notes(rows):
    notes = []
    for row in rows:
        if row.get("said"):
            notes.append(f"- `{row['text']}` said: {row['said']}")
        if row["problem"] and row["seconds"]:
            notes.append(f"- `{row['text']}`: {row['problem']}")
    return [*notes, ""] if notes else []


def spread_warnings(fs, rows):
    for row in rows:
        if len(row["seconds"]) > 2 and median(row["seconds"]) > 0.1:
            spread = mad(row["seconds"]) / median(row["seconds"])
            if spread > LARGE_SPREAD:
                yield f"{fs}, `{row['text']}`: large spread, MAD is {spread:.0%} of the median"


def judged(results):
    """(target, measured, reached) for each target; measured is None where a side was not run."""
    for target in TARGETS:
        volume = results["volumes"].get(target.fs, {})
        value = _median_of(volume, target.command)
        if value is not None and target.against is not None:
            against = _median_of(volume, target.against)
            value = value / against if against else None
        yield target, value, value is not None and value <= target.limit


def _median_of(volume, command):
    if command.section == "copy":
        results = volume.get("copy", {}).get("results", [])
        return next((result["median"] for result in results if result["command"] == command.text), None)
    rows = volume.get("rows", [])
    seconds = next((row["seconds"] for row in rows if row["section"] == command.section and row["text"] == command.text), [])
    return median(seconds) if seconds else None


def _targets(results):
    yield "| target | measured | |"
    yield "|---|--:|---|"
    for target, value, reached in judged(results):
        if value is None:
            yield f"| {target.text} | - | not measured |"
        else:
            shown = duration(value) if target.against is None else f"{value:.2f}"
            yield f"| {target.text} | {shown} | {'reached' if reached else '**missed**'} |"


def _losses(results):
    """Every peer that is faster than the plain Calve command of its section, with Calve's ratio to it."""
    losses, measured = [], False
    for fs, volume in results["volumes"].items():
        copies = volume.get("copy", {}).get("results", [])
        medians = {result["command"]: result["median"] for result in copies}
        for result in copies:
            if result["faster_than"]:
                ratio = medians[result["faster_than"]] / result["median"]
                losses.append(f"- {fs}: `{result['faster_than']}` takes {ratio:.2f} of the time of `{result['command']}`")
        measured = measured or bool(copies)
        for section in ("snapshot", "remove"):
            rows = [row for row in volume["rows"] if row["section"] == section and row["seconds"]]
            ours = [row for row in rows if row["text"] in ("calve cp SRC DST", "calve rm --wait TREE")]
            measured = measured or bool(ours)
            for row in rows if ours else []:
                ratio = median(ours[0]["seconds"]) / median(row["seconds"])
                if row["side"] == "peer" and ratio > 1:
                    losses.append(f"- {fs}: `{ours[0]['text']}` takes {ratio:.2f} of the time of `{row['text']}`")
    return losses or ["Nowhere in these measurements." if measured else "Calve was not measured."]
