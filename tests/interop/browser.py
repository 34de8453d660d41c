"""Chromium without a window, for suites of what browsers show. npm fetches what drives it, at the version and sum of
browser_driver/package-lock.json, and it is kept beside the build."""

import json
import subprocess

from larder_test import HERE, Skip, fetched_node, needs


class Browser:
    """A running browser with one page at a time."""

    def __init__(self):
        program = needs("chromium")
        node, folder = needs("node"), fetched_node("browser_driver")
        command = [node, f"{HERE}/clients/browser.js", folder, program]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def ask(self, do, **arguments):
        """The value of a command of clients/browser.js."""
        try:
            self.process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise Skip(f"chromium does not run: {self.process.stderr.read().strip()[-300:]}")
        reply = json.loads(line)
        if "error" in reply:
            raise AssertionError(f"{do}: {reply['error'][:400]}")
        return reply["value"]

    def open(self, url, width=1280, height=900, dark=False, script=True, password=None, scale=1):
        """Opens a page in a fresh profile. Returns its status, its fields and its bytes."""
        size = {"width": width, "height": height, "scale": scale}
        return self.ask("open", url=url, dark=dark, script=script, password=password, **size)

    def run(self, code):
        """The value of an expression of JavaScript in the page."""
        return self.ask("run", code=code)
