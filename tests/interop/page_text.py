"""What is in a page: its fenced blocks with their markers, and the options, files and names that it promises."""

import glob
import os
import re
import shlex

FENCE = re.compile(r"^```(\w*)$")
MARKER = re.compile(r"<!-- (not run|needs|shortened|serves|prints)(?:: (.*?))? *-->$")
OPTION = re.compile(r"(?<![\w`-])--[a-z][a-z-]*[a-z]")
SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
# The first word of a line that a reader would paste into a shell.
PROGRAMS = {"cargo", "larder", "larder-bench", "make", "pip", "python3", "memcached"}


class Block:
    """A fenced block: its page, the line of its fence, its language, its text, and the comments right above it.

    `sh` is commands, `console` commands after `$ ` with what they print, everything else is only read. Markers:
      <!-- not run: why -->             the commands cannot run here
      <!-- needs: PROGRAM ... -->       they are skipped where a program is not installed
      <!-- shortened: THIS => THAT -->  they run with these words exchanged; it may stand there several times
      <!-- serves: PORT -->             the command serves until it is stopped, which happens once the port is open
      <!-- prints -->                   the text is what the block before prints; `...` stands for anything
    """

    def __init__(self, page, line, language, text, markers):
        self.page, self.line, self.language, self.text = page, line, language, text
        self.not_run = next((value for name, value in markers if name == "not run"), None)
        self.needs = [word for name, value in markers if name == "needs" for word in value.split()]
        self.shortened = [value.split(" => ") for name, value in markers if name == "shortened"]
        self.serves = next((value for name, value in markers if name == "serves"), None)
        self.is_output = any(name == "prints" for name, _ in markers)

    def __str__(self):
        return f"{self.page}:{self.line}"

    @property
    def is_run(self):
        return self.language in ("sh", "console")

    def fault(self):
        """Returns what is wrong with the block itself, or None."""
        if not self.language:
            return "a fence without a language: sh and console are run, text is only read"
        first = [line.split()[0] for line in self.text.splitlines() if line.split()]
        if not self.is_run and not self.is_output and any(is_program(word) for word in first):
            return f"commands in a block of {self.language}, which nothing runs"
        missing = [old for old, *_ in self.shortened if old not in self.text]
        return f"nothing to shorten: {missing[0]!r} is not in the block" if missing else None

    def commands(self):
        """Returns the commands that are run, without what they print."""
        text = self.text
        if self.language == "console":
            text = "\n".join(line[2:] for line in text.splitlines() if line.startswith("$ "))
        for old, new in self.shortened:
            text = text.replace(old, new)
        return text


def is_program(word):
    return os.path.basename(word) in PROGRAMS or re.match(r"(scripts|target|tests)/", word)


def blocks(page, text):
    """Returns the fenced blocks of a page."""
    found, markers, lines = [], [], text.splitlines()
    at = 0
    while at < len(lines):
        fence, marker = FENCE.match(lines[at]), MARKER.match(lines[at])
        at += 1
        if marker:
            markers.append((marker[1], marker[2]))
        elif fence:
            start = at
            while lines[at] != "```":
                at += 1
            found.append(Block(page, start, fence[1], "\n".join(lines[start:at]), markers))
            at += 1
            markers = []
        else:
            markers = []
    return found


def spans(text):
    """Returns what stands between backquotes outside of fenced blocks."""
    outside = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return [" ".join(span.split()) for span in SPAN.findall(outside)]


def simple_commands(text):
    """Returns the words of each simple command of a script, as far as they matter: program, arguments."""
    text = re.sub(r"<<'?(\w+)'?.*?^\1$", "", text.replace("\\\n", " "), flags=re.MULTILINE | re.DOTALL)
    found = []
    for line in text.splitlines():
        try:
            lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            words = list(lexer)
        except ValueError:
            continue
        command = []
        for word in [*words, ";"]:
            if re.fullmatch(r"[;&|()<>]+", word):
                if command:
                    found.append(command)
                command = []
            else:
                command.append(word)
    return found


def expanded(name):
    """Returns the names that a name with braces stands for."""
    inner = re.search(r"\{([^{}]*)\}", name)
    if not inner:
        return [name]
    return [one for part in inner[1].split(",") for one in expanded(name[: inner.start()] + part + name[inner.end() :])]


def missing_paths(root, text):
    """Returns the files, modules, targets of make and tests that a page names and that do not exist."""
    missing = []
    with open(os.path.join(root, "Makefile"), encoding="utf-8") as file:
        targets = re.findall(r"^([a-z]+):", file.read(), re.MULTILINE)
    for span in spans(text):
        for name in expanded(span.split()[0]):
            if re.match(r"(scripts|tests|crates|docs|fuzz)/[\w./*-]+$", name):
                missing += [] if glob.glob(os.path.join(root, name)) else [name]
            elif module := re.match(r"(store|server|device|protocol|engine)::((?:[a-z0-9_]+::)*[a-z0-9_]+)$", name):
                # A room of the benchmark, a module of a crate, or one in the crate's module of the same name.
                folder = "bench/src/engine" if module[1] == "engine" else f"{module[1]}/src"
                path = module[2].replace("::", "/") + ".rs"
                known = [f"{root}/crates/{folder}/{path}", f"{root}/crates/{folder}/{module[1]}/{path}"]
                missing += [] if any(map(os.path.exists, known)) else [name]
        missing += [f"make {word}" for word in re.findall(r"^make ([a-z]+)", span) if word not in targets]
        if span.startswith("cargo test"):
            for test in re.findall(r"--test (\w+)", span):
                known = glob.glob(os.path.join(root, f"crates/*/tests/{test}.rs"))
                known += glob.glob(os.path.join(root, f"crates/*/tests/{test}/main.rs"))
                missing += [] if known else [f"--test {test}"]
    return missing
