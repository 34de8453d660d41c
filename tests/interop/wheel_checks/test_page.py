"""The examples of docs/python.md, each as it stands there but for the address of the server; and the typed example."""

import os
import re
import subprocess
import sys

import larder
import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
SERVER = os.environ["LARDER_SERVER"]
NAME = os.environ["LARDER_SHARED_MEMORY"]


def examples():
    with open(os.path.join(HERE, "..", "..", "..", "docs", "python.md"), encoding="utf-8") as page:
        found = re.findall(r"^```python\n(.*?)^```$", page.read(), re.MULTILINE | re.DOTALL)
    assert all("127.0.0.1:11211" in text or "larder.L1(" in text for text in found)
    names = re.sub(r'"(shop|sessions|django)"', f'"{NAME}"', "\0".join(found))
    return names.replace("127.0.0.1:11211", SERVER).split("\0")


def run(text):
    space = {"__name__": "__main__"}
    exec(compile(text, "docs/python.md", "exec"), space)
    return space


def example(words):
    (text,) = [text for text in examples() if words in text]
    return run(text)


@pytest.mark.parametrize("number", range(len(examples())))
def test_an_example_runs(server, number):
    run(examples()[number])


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
