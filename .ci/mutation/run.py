#!/usr/bin/env python3
"""Mutation testing of what must not be wrong (docs/internals/mutation.md). cargo-mutants says what to change, one build
holds all of it, and each mutant is woken in processes of its own.

    run.py build              list the mutants, build them, drop those that do not compile
    run.py measure            run every test with none awake: how long it takes, which mutants it comes by
    run.py test K/N PATTERN   wake each mutant (of the K-th of N parts, with such a name) against the tests that come by it
    run.py again PATTERN      the same for the survivors only
    run.py table              count by folder, and name the survivors
"""

import json, os, random, re, shutil, signal, subprocess, sys, time
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
WORK = Path(os.environ.get("SEAWALL_MUTATION_DIR", ROOT / "target/mutation"))
COPY, TARGET, LIST, UNVIABLE = WORK / "copy", WORK / "target", WORK / "mutants.json", WORK / "unviable.json"
BINARIES, TESTS, RESULTS = WORK / "binaries.json", WORK / "tests.json", WORK / "results.jsonl"
NO_PLACE = "no place for a switch"
# Our code a little optimised: it is built once and run some ten thousand times.
PROFILE = ["--config", "profile.dev.package.seawall.opt-level=1"]
MEMORY = 6 << 30  # bytes of address space: a mutant that never stops may eat without end
SECONDS = float(os.environ.get("SEAWALL_MUTATION_SECONDS", "60"))  # of tests against one mutant
SEEDS = int(os.environ.get("SEAWALL_MUTATION_SEEDS", "16"))  # of the swarm, each a test
FOLDERS = ["src/ledger", "src/bookie/journal", "src/metadata/consensus", "src/broker/cursor"]


def folder(file):
    return next(name for name in FOLDERS if file.startswith(name + "/"))


def names():
    return [mutant["name"] for mutant in json.loads(LIST.read_text())]


def cargo(*arguments, capture=False):
    environment = dict(os.environ, CARGO_TARGET_DIR=str(TARGET))
    environment.pop("RUSTFLAGS", None)
    return subprocess.run([os.environ.get("CARGO", "cargo"), *arguments], cwd=COPY, env=environment, text=True,
                          stdout=subprocess.PIPE if capture else None)


def switch(dropped):
    """Writes the copy with every mutant but the dropped; the map says where each one's text is."""
    listed = subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True)
    for name in filter(lambda name: (ROOT / name).is_file(), listed.splitlines()):
        (COPY / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, COPY / name)
    lib = COPY / "src/lib.rs"
    lib.write_text(lib.read_text() + "\n#[allow(missing_docs)]\npub mod switched;\n")
    (WORK / "dropped.json").write_text(json.dumps(sorted(dropped)))
    tool = WORK / "switch/debug/switch"
    return json.loads(subprocess.check_output([tool, ROOT, COPY, LIST, WORK / "dropped.json"], text=True))


def guilty(map_of_file, start, end):
    """The mutants to blame for an error at these bytes: whose text it is in, else all values of its function."""
    inside = [number for low, high, number in map_of_file["ranges"] if low <= start and end <= high]
    if inside:
        return inside
    out, original = max(pair for pair in map_of_file["origin"] if pair[0] <= start)
    place = original + start - out
    around = [(high - low, numbers) for low, high, numbers in map_of_file["functions"] if low <= place <= high]
    return min(around)[1] if around else []


def build():
    COPY.mkdir(parents=True, exist_ok=True)
    before = names() if LIST.exists() else []
    with LIST.open("w") as out:
        subprocess.run(["cargo", "mutants", "--list", "--json"], cwd=ROOT, stdout=out, check=True)
    subprocess.run(["cargo", "build", "--quiet", "--manifest-path", HERE / "switch/Cargo.toml",
                    "--target-dir", WORK / "switch"], check=True)
    dropped, unplaced = {}, set()
    if names() == before and UNVIABLE.exists():
        known = json.loads(UNVIABLE.read_text())
        dropped = {int(number): why for number, why in known.items() if why != NO_PLACE}
    else:
        TESTS.unlink(missing_ok=True)
        RESULTS.unlink(missing_ok=True)
    while True:
        laid = switch(dropped)
        unplaced = set(laid["unplaced"])
        check = cargo("check", "--lib", "--message-format=json", *PROFILE, capture=True)
        if check.returncode == 0:
            break
        new, unexplained = {}, []
        for line in check.stdout.splitlines():
            message = json.loads(line).get("message")
            if not isinstance(message, dict) or message["level"] != "error" or not message["spans"]:
                continue
            blamed = []
            for span in message["spans"]:
                file = laid["files"].get(span["file_name"])
                if file and span["is_primary"]:
                    blamed += guilty(file, span["byte_start"], span["byte_end"])
            new.update({number: message["message"] for number in blamed})
            if not blamed:
                unexplained.append(message["rendered"])
        print(f"{len(new)} do not compile", flush=True)
        if not new:
            sys.exit("errors that no mutant explains:\n" + "\n".join(unexplained))
        dropped.update(new)
    mutants = json.loads(LIST.read_text())
    UNVIABLE.write_text(json.dumps(
        {**{str(number): why for number, why in dropped.items()},
         **{str(number): NO_PLACE for number in unplaced}}, indent=1))
    print(f"{len(mutants)} mutants, {len(dropped)} do not compile, {len(unplaced)} could not be placed", flush=True)
    done = cargo("test", "--no-run", "--message-format=json", *PROFILE, capture=True)
    built = {}
    for line in done.stdout.splitlines():
        said = json.loads(line)
        if said.get("executable"):
            built[said["target"]["name"] + ("" if said["target"]["kind"] != ["lib"] else "-unit")] = said["executable"]
    if done.returncode != 0:
        sys.exit("the tests do not build")
    BINARIES.write_text(json.dumps(built, indent=1))
    print(built)


def run(command, seconds, mutant=None, seen=None):
    """How it ended and how long it took: passed, failed or timeout. A busy machine shall make no time-out, so what is
    limited is processor time, and the time on the clock six times farther away."""
    environment = dict(os.environ, RUST_BACKTRACE="0", CARGO_MANIFEST_DIR=str(COPY), PROPTEST_DISABLE_FAILURE_PERSISTENCE="1")
    environment.pop("SEAWALL_SWITCH", None)
    if mutant is not None:
        environment["SEAWALL_SWITCH"] = str(mutant)
    if seen:
        environment["SEAWALL_SWITCH_SEEN"] = str(seen)
    began = time.monotonic()
    with (WORK / "last_output").open("w") as out:
        child = subprocess.Popen(["prlimit", f"--as={MEMORY}", f"--cpu={int(seconds) + 1}", "--core=0", *command], cwd=COPY, env=environment,
                                 stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code = child.wait(timeout=6 * seconds)
            ended = "passed" if code == 0 else "timeout" if -code in (signal.SIGXCPU, signal.SIGKILL) else "failed"
        except subprocess.TimeoutExpired:
            ended = "timeout"
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()
    return ended, time.monotonic() - began


def command(built, binary, names):
    if binary == "seeds":
        # The exit code is no use: it also says whether each checker had something to compare, which one seed need not give.
        seeds = f"{names[0]}..{int(names[0]) + 1}"
        return ["sh", "-c", f"{built['seawall']} --log off sim run --seeds {seeds} --topology swarm | grep ': 0 failed'"]
    return [built[binary], "--exact", "--test-threads", "1", *names]


def measure():
    built = json.loads(BINARIES.read_text())
    known = {(one["binary"], one["test"]): one for one in json.loads(TESTS.read_text())} if TESTS.exists() else {}
    known = {key: one for key, one in known.items() if one["ended"] == "passed"}
    wanted = []
    for binary in filter(built.get, ["seawall-unit", "proptests", "sim-tests"]):
        listed = subprocess.check_output([built[binary], "--list", "--format", "terse"], text=True, cwd=COPY)
        tests = [line.removesuffix(": test") for line in listed.splitlines() if line.endswith(": test")]
        # The copy is not the tree whose style is tested.
        wanted += [(binary, test) for test in tests if not test.startswith(("tidy", "fidelity"))]
    if "seawall" in built:
        wanted += [("seeds", str(seed)) for seed in range(SEEDS)]
    measured, seen = [], WORK / "seen"
    for binary, test in wanted:
        one = known.get((binary, test))
        if one is None:
            seen.unlink(missing_ok=True)
            ended, seconds = run(command(built, binary, [test]), 120, seen=seen)
            by = sorted({int(line) for line in seen.read_text().split()}) if seen.exists() else []
            one = {"binary": binary, "test": test, "ended": ended, "seconds": round(seconds, 3), "by": by}
            if ended != "passed":
                print(f"not used, {ended} with none awake: {binary} {test}", flush=True)
        measured.append(one)
        TESTS.with_suffix(".part").write_text(json.dumps(measured))
    TESTS.with_suffix(".part").rename(TESTS)
    used = [one for one in measured if one["ended"] == "passed" and one["by"]]
    print(f"{len(measured)} tests in {sum(one['seconds'] for one in measured):.0f} s, {len(used)} come by a mutant")


def first_failure(binary, names):
    text = (WORK / "last_output").read_text(errors="replace")
    found = re.search(r"^test (\S+) \.\.\. FAILED", text, re.M)
    return found.group(1) if found else f"seed {names[0]}" if binary == "seeds" else names[0]


def hunt(number, tests, kills):
    """Runs what comes by the mutant, the cheapest and most successful first, until something fails."""
    built = json.loads(BINARIES.read_text())
    left = sorted(tests, key=lambda one: one["seconds"] / (1 + 4 * kills[one["test"]]))
    spent, ran = 0.0, 0
    while left and spent < SECONDS:
        binary, batch, expected = left[0]["binary"], [], 0.0
        for one in left:
            if one["binary"] == binary and (not batch or (binary != "seeds" and expected + one["seconds"] < max(0.5, spent))):
                batch.append(one)
                expected += one["seconds"]
        left = [one for one in left if one not in batch]
        names = [one["test"] for one in batch]
        ended, seconds = run(command(built, binary, names), 2 + 4 * expected, mutant=number)
        if ended != "passed":
            test = first_failure(binary, names)
            kills[test] += 1
            return {"ended": {"failed": "caught", "timeout": "timeout"}[ended], "by": binary, "test": test}
        spent, ran = spent + expected, ran + len(batch)
    return {"ended": "survived", "ran": ran, "of": len(tests)}


def verdict(number, mutant, unviable, coming_by, kills):
    why = unviable.get(str(number))
    if why is None:
        return hunt(number, coming_by[number], kills)
    in_constant = "non-const" in why
    opaque = mutant["genre"] == "FnValue" and "impl " in mutant["function"]["return_type"] and "mismatched" in why
    return {"ended": "not tried" if in_constant or opaque else "unviable", "why": why}


def results():
    said = map(json.loads, RESULTS.read_text().splitlines()) if RESULTS.exists() else []
    return {one["name"]: one for one in said}


def test(part="1/1", pattern="", again=False):
    part_of, parts = (int(number) for number in part.split("/"))
    mutants = list(enumerate(json.loads(LIST.read_text())))
    random.Random(1).shuffle(mutants)
    unviable, done = json.loads(UNVIABLE.read_text()), results()
    coming_by = defaultdict(list)
    for one in json.loads(TESTS.read_text()):
        if one["ended"] == "passed":
            for number in one["by"]:
                coming_by[number].append(one)
    kills = defaultdict(Counter)
    for place, (number, mutant) in enumerate(mutants):
        before = done.get(mutant["name"])
        is_due = before is not None and before["ended"] == "survived" if again else before is None
        if not is_due or place % parts != part_of - 1 or not re.search(pattern, mutant["name"]):
            continue
        began = time.monotonic()
        said = {"name": mutant["name"], "file": mutant["file"], "number": number,
                **verdict(number, mutant, unviable, coming_by, kills[mutant["file"]])}
        said["seconds"] = round(time.monotonic() - began, 1)
        with RESULTS.open("a") as out:
            out.write(json.dumps(said) + "\n")
        print(said["ended"], mutant["name"], said.get("by", ""), said.get("test", ""), said["seconds"], flush=True)


def table():
    said = results()
    listed = json.loads(LIST.read_text())
    columns = ["caught", "timeout", "survived", "unviable", "not tried"]
    print("| folder | mutants |", " | ".join(columns), "|")
    print("| --- " * (len(columns) + 2) + "|")
    for name in FOLDERS:
        here = [said.get(mutant["name"], {"ended": "not tried"})["ended"] for mutant in listed if folder(mutant["file"]) == name]
        print(f"| `{name}` | {len(here)} |", " | ".join(str(here.count(column)) for column in columns), "|")
    for one in sorted(said.values(), key=lambda one: one["name"]):
        if one["ended"] == "survived":
            print(one["name"], f"({one['ran']} of {one['of']} tests)")


if __name__ == "__main__":
    todo = {"build": build, "measure": measure, "test": test, "again": lambda pattern="": test(pattern=pattern, again=True), "table": table}
    todo[sys.argv[1]](*sys.argv[2:])
