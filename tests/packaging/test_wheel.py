"""What is in the wheel, and what it says of itself: read from the file, nothing is installed."""

from __future__ import annotations

import email.message
import email.parser
import re
import tomllib
import zipfile
from email.policy import default
from functools import partial
from pathlib import Path

import pytest

from seriatim_models.extras import EXTRA_OF

ROOT = Path(__file__).resolve().parents[2]
OURS = ("seriatim/", "seriatim_models/", "seriatim-")
PLACE = "https://example.org/seriatim"
"""Stands for wherever the repository is; what follows it is a path of the repository."""
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.fixture(scope="module")
def contents(wheel: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(wheel)


@pytest.fixture(scope="module")
def metadata(contents: zipfile.ZipFile) -> email.message.EmailMessage:
    [name] = [name for name in contents.namelist() if name.endswith(".dist-info/METADATA")]
    parser = email.parser.BytesParser(partial(email.message.EmailMessage), policy=default)
    return parser.parsebytes(contents.read(name))


def test_the_wheel_holds_the_two_packages_and_the_lessons_only(contents: zipfile.ZipFile) -> None:
    names = contents.namelist()
    assert not [name for name in names if not name.startswith(OURS)]
    data = [name for name in names if ".data/" in name]
    assert data
    assert not [name for name in data if "/data/share/seriatim/lessons/" not in name]
    assert not [name for name in names if "workshop" in name or "/tests/" in name]


def test_every_source_in_the_wheel_is_python_of_this_checkout(contents: zipfile.ZipFile) -> None:
    """No program in another language comes along: those of peers are in the workshop."""
    roots = {"seriatim": ROOT / "reference", "seriatim_models": ROOT / "models"}
    foreign = []
    for name in contents.namelist():
        root = roots.get(name.partition("/")[0])
        if root is None:
            continue
        assert contents.read(name) == (root / name).read_bytes()
        if Path(name).suffix not in {".py", ".typed", ".toml", ".j2", ".css", ".properties"}:
            foreign.append(name)
    ours = [f"seriatim_models/report/templates/{name}.js" for name in ("recording", "stepper")]
    assert sorted(foreign) == ours, "of our own pages"


def test_the_license_is_in_the_wheel_and_is_the_one_that_is_named(
    contents: zipfile.ZipFile, metadata: email.message.EmailMessage
) -> None:
    assert metadata["License-Expression"] == "Apache-2.0"
    [name] = [name for name in contents.namelist() if "/licenses/" in name]
    text = contents.read(name).decode("utf-8")
    assert text == (ROOT / "spec" / "LICENSE").read_text("utf-8")
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert metadata["Author"] == "the seriatim contributors"


def test_every_address_of_the_project_is_a_path_of_the_repository(
    metadata: email.message.EmailMessage,
) -> None:
    readme = str(metadata.get_payload())
    links = re.findall(r"\]\(([^)]+)\)", readme)
    assert len(links) > 15, "the links of README"
    urls = [value.partition(", ")[2] for value in metadata.get_all("Project-URL", [])]
    assert len(urls) == len(PROJECT["urls"])
    for address in [*links, *urls]:
        assert address.startswith(PLACE), f"{address} leads nowhere outside the repository"
        path = re.sub(r"^/(blob|raw)/main/", "", address.removeprefix(PLACE))
        assert (ROOT / path.partition("#")[0]).exists(), f"{address}: there is no {path}"


def test_pictures_of_the_readme_are_addressed_as_files(
    metadata: email.message.EmailMessage,
) -> None:
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", str(metadata.get_payload()))
    assert pictures
    assert all(address.startswith(f"{PLACE}/raw/main/") for address in pictures)


def test_the_sentence_for_a_missing_package_names_an_extra_that_brings_it() -> None:
    named = PROJECT["optional-dependencies"]
    required = {re.split(r"[^\w-]", line)[0] for line in PROJECT["dependencies"]}
    for package, extra in EXTRA_OF.items():
        brought = {re.split(r"[^\w-]", line)[0] for line in named[extra]}
        assert package in brought, f"extra {extra} does not bring {package}"
        assert package not in required, f"{package} is no extra"
