"""The examples of docs/python.md, each as it stands there but for the address of the server, and what they print; and the
typed example."""

import os
import re
import subprocess
import sys

import larder
import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
SERVER = os.environ["LARDER_SERVER"]
NAME = os.environ["LARDER_SHARED_MEMORY"]


def page():
    with open(os.path.join(HERE, "..", "..", "..", "docs", "python.md"), encoding="utf-8") as file:
        return file.read()


def examples():
    found = re.findall(r"^```python\n(.*?)^```$", page(), re.MULTILINE | re.DOTALL)
    assert all("127.0.0.1:11211" in text or "larder.L1" in text for text in found)
    names = re.sub(r'"(shop|sessions|django)"', f'"{NAME}"', "\0".join(found))
    return names.replace("127.0.0.1:11211", SERVER).split("\0")


def printed():
    """Returns the examples below which the page shows what they print, by their numbers, with that."""
    shown = re.findall(
        r"^```python\n(?:.*?)^```$(?:\n\n<!-- prints -->\n```text\n(.*?)^```$)?", page(), re.MULTILINE | re.DOTALL
    )
    return [(number, text) for number, text in enumerate(shown) if text]


def run(text):
    space = {"__name__": "__main__"}
    exec(compile(text, "docs/python.md", "exec"), space)
    return space


def example(words):
    (text,) = [text for text in examples() if words in text]
    return run(text)


@pytest.mark.parametrize("number", sorted(set(range(len(examples()))) - {number for number, _ in printed()}))
def test_an_example_runs(server, number):
    run(examples()[number])


@pytest.mark.parametrize("number, shown", printed(), ids=[number for number, _ in printed()])
def test_an_example_prints_what_the_page_shows(number, shown, capsys):
    run(examples()[number])
    told = capsys.readouterr().out
    figures = re.compile(r"\d+")
    assert figures.sub("N", told) == figures.sub("N", shown), told
    # Which keys share a part of the cache is different in each.
    for is_, should_be in zip(map(int, figures.findall(told)), map(int, figures.findall(shown)), strict=True):
        assert abs(is_ - should_be) <= max(0.03 * should_be, 1), told


def test_django_runs_with_the_settings_of_the_page():
    settings = example("CACHES")["CACHES"]
    settings["default"]["OPTIONS"]["shared_memory"] = NAME
    code = f"""
import django
from django.conf import settings
settings.configure(CACHES={settings!r})
django.setup()
from django.core.cache import cache
cache.set("k", {{"a": (1, 2)}}, 60)
assert cache.get("k") == {{"a": (1, 2)}}
assert cache._cache.peek(cache.make_key("k")) == {{"a": (1, 2)}}
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_django_takes_the_options_of_shared_memory(server):
    settings = example("CACHES")["CACHES"]
    # So short that each read would ask the server, if that did not announce changes.
    settings["default"]["OPTIONS"].update(shared_memory=NAME, fresh=0.01, push=True, exact_within=0.5)
    code = f"""
import time
from django.conf import settings
settings.configure(CACHES={settings!r})
from django.core.cache import cache
cache.set("k", 1)
asked = lambda: cache._cache.stats()[b"cmd_get"]
deadline = time.monotonic() + 30
while True:
    before = asked()
    for _ in range(20):
        assert cache.get("k") == 1
        time.sleep(0.02)
    if asked() - before < 5:
        break
    assert time.monotonic() < deadline, asked() - before
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_flask_denies_the_fourth_request_of_the_page(server):
    app = example("Flask(")["app"]
    assert [app.test_client().get("/").status_code for _ in range(5)] == [200, 200, 200, 429, 429]


def test_the_client_of_the_page_reads_what_it_wrote(server):
    space = example("client.get_many")
    assert (space["page"], space["pages"], space["visits"]) == (b"<html>", {"page:1": b"<html>"}, 1)


def test_the_typed_example_runs(server):
    words = [sys.executable, os.path.join(HERE, "typed_example.py"), SERVER, f"{NAME}-typed"]
    told = subprocess.run(words, check=True, capture_output=True, text=True, timeout=60).stdout
    assert "b'v' 7 TEXT" in told and "more than 250" in told


def teardown_module():
    larder.L1.remove(NAME)
