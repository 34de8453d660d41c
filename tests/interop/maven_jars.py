"""Java's libraries that Debian does not have: Maven fetches them from where its own settings say, once; the files are checked
against pinned sums and kept beside the build."""

import hashlib
import os
import shutil
import subprocess
import tempfile
import time

from larder_test import HERE, Skip, needs


def fetched_jars(place, name):
    """The folder with the jars that `pom.xml` in a folder here names, as its `sha256sums` pins them; it is called `name`."""
    sums = {}
    with open(os.path.join(HERE, place, "sha256sums"), encoding="ascii") as file:
        for line in file:
            digest, jar = line.split()
            sums[jar] = digest
    folder = os.path.join(os.path.dirname(os.path.abspath(os.environ["LARDER"])), name)
    if not is_whole(folder, sums):
        fetch(place, folder, sums)
    return folder


def fetch(place, folder, sums):
    maven = needs("mvn")
    partial = tempfile.mkdtemp(prefix=f"{os.path.basename(folder)}.", dir=os.path.dirname(folder))
    began = time.monotonic()
    try:
        done = subprocess.run(
            [maven, "--batch-mode", "--quiet", "-f", os.path.join(HERE, place, "pom.xml"),
             "dependency:copy-dependencies", f"-DoutputDirectory={partial}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            timeout=300,
        )
        if done.returncode != 0:
            lines = [line for line in done.stdout.splitlines() if "ERROR" in line] or ["no reason given"]
            raise Skip(f"Maven cannot fetch it: {lines[0][:300]}")
        if not is_whole(partial, sums):
            raise RuntimeError(f"what Maven fetched is not what {HERE}/{place}/sha256sums pins")
        shutil.rmtree(folder, ignore_errors=True)
        os.chmod(partial, 0o755)
        os.rename(partial, folder)
    except subprocess.TimeoutExpired:
        raise Skip(f"Maven did not fetch it in {time.monotonic() - began:.0f} s") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def is_whole(folder, sums):
    if not os.path.isdir(folder) or set(os.listdir(folder)) != set(sums):
        return False
    for name, digest in sums.items():
        with open(os.path.join(folder, name), "rb") as file:
            if hashlib.sha256(file.read()).hexdigest() != digest:
                return False
    return True


def needs_compiler(java):
    """Skips where this Java can run programs but not compile them."""
    modules = subprocess.run([java, "--list-modules"], capture_output=True, text=True, check=False).stdout
    if "jdk.compiler" not in modules:
        raise Skip("this java cannot start a program from its source: it lacks the module jdk.compiler")
