"""What suites share that run tests which others publish: an environment with pinned packages, the source distributions that
the tests are in, and what became of each test."""

import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import xml.etree.ElementTree

from larder_test import Skip, expect_that

# What became of a test that the others skip for this kind of back end.
SKIPPED = object()


def run(command, seconds=1800, **options):
    return subprocess.run(
        command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=seconds, **options
    )


def last_line(done):
    return ((done.stderr + done.stdout).strip().splitlines() or ["no reason given"])[-1][:200]


class Kept:
    """What pip fetched, beside the build: an environment with the packages that the file `pins` names, and source
    distributions. `sources` names a file of each package that has one."""

    def __init__(self, name, pins, sources):
        self.pins, self.sources = pins, sources
        with open(pins, "rb") as file:
            sums = hashlib.sha256(file.read() + sys.version.encode()).hexdigest()[:12]
        beside = os.path.dirname(os.path.abspath(os.environ["LARDER"]))
        self.folder = os.path.join(beside, f"interop-{name}-{sums}")
        self.done = os.path.join(self.folder, "complete")
        if not os.path.exists(self.done):
            self.fetch()
        self.fetching = threading.Lock()
        self.pip = os.path.join(self.folder, "bin", "pip")
        self.python = os.path.join(self.folder, "bin", "python")
        (self.packages,) = glob.glob(f"{self.folder}/lib/python3*/site-packages")

    def fetch(self):
        # An environment knows its own path, so it is made where it stays.
        shutil.rmtree(self.folder, ignore_errors=True)
        for command in (
            [sys.executable, "-m", "venv", self.folder],
            [f"{self.folder}/bin/pip", "install", "--quiet", "--requirement", self.pins],
        ):
            done = run(command)
            if done.returncode != 0:
                raise Skip(f"pip cannot fetch what it needs: {last_line(done)}")
        open(self.done, "w", encoding="ascii").close()

    def source(self, package):
        """Returns the folder of the package's source distribution."""
        folder = os.path.join(self.folder, "sources", package)
        with self.fetching:
            if not os.path.isdir(folder):
                self.fetch_source(package, folder)
        file = self.sources[package]
        expect_that(os.path.exists(os.path.join(folder, file)), f"{package} has {file}")
        return folder

    def pinned(self, package):
        with open(self.pins, encoding="utf-8") as file:
            return re.search(rf"^{package}==.*$", file.read(), re.MULTILINE)[0]

    def fetch_source(self, package, folder):
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            wanted = ["--no-deps", "--no-binary", ":all:", "--dest", scratch, self.pinned(package)]
            done = run([self.pip, "download", "--quiet", *wanted])
            if done.returncode != 0:
                raise Skip(f"pip cannot fetch the source of {package}: {last_line(done)}")
            (archive,) = glob.glob(f"{scratch}/*.tar.gz")
            shutil.unpack_archive(archive, f"{scratch}/unpacked", filter="data")
            (unpacked,) = glob.glob(f"{scratch}/unpacked/*")
            os.makedirs(os.path.dirname(folder), exist_ok=True)
            os.rename(unpacked, folder)


def pytest(suite, name, python, words, environment, folder):
    """Runs a group of tests, and returns for the name of each why it failed, or SKIPPED, or None."""
    report = os.path.join(suite.scratch, f"{name}.xml")
    words = ["-q", "--durations=3", "-p", "no:cacheprovider", "-W", "ignore", f"--junitxml={report}", *words]
    done = run([python, "-m", "pytest", *words], seconds=300, cwd=folder, env=environment)
    if os.environ.get("INTEROP_VERBOSE"):
        print(f"# {name}: {done.stdout[-800:]}", flush=True)
    if not os.path.exists(report):
        raise RuntimeError(f"pytest ends with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")
    outcomes = {}
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        test = f"{case.get('classname')}.{case.get('name')}"
        faults = [child for child in case if child.tag in ("failure", "error")]
        skips = [child for child in case if child.tag == "skipped"]
        # One that was given another chance is there twice.
        if faults:
            outcomes[test] = (faults[0].text or faults[0].get("message") or "")[-1500:]
        else:
            outcomes[test] = SKIPPED if skips else None
    if all(outcome is SKIPPED for outcome in outcomes.values()):
        raise RuntimeError(f"no test was run: {done.stdout[-2000:]}")
    return outcomes


def count(suite, name, outcomes):
    """Counts the tests of a group. Those that others skip for this kind of back end are only told."""
    for test, why in outcomes.items():
        if why is None:
            suite.ok(f"{name}: {test}")
        elif why is not SKIPPED:
            suite.fail(f"{name}: {test}", why)
    skipped = [test for test, why in outcomes.items() if why is SKIPPED]
    not_for = f", not for such a back end: {', '.join(skipped)}" if skipped else ""
    passed = sum(why is None for why in outcomes.values())
    print(f"# {name}: {passed} passed, {len(outcomes) - passed - len(skipped)} failed{not_for}", flush=True)
