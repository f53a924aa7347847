"""How the Java process of a local session collects garbage: as somebody chose, else in parallel."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.spark.spark_session import JVM_OPTIONS, selects_collector
from tests.waiting import WAIT_S

ASK = """
from fencepost import spark as fps
spark = fps.session(1)
beans = spark._jvm.java.lang.management.ManagementFactory.getGarbageCollectorMXBeans()
print([bean.getName() for bean in beans])
"""


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in (*JVM_OPTIONS, "SPARK_CONF_DIR", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_who_has_chosen(nobody: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert not selects_collector()
    nobody.setenv("JAVA_TOOL_OPTIONS", "-Xmx1g")
    assert not selects_collector()
    nobody.setenv("JAVA_TOOL_OPTIONS", "-Xmx1g -XX:+UseG1GC")
    assert selects_collector()
    nobody.delenv("JAVA_TOOL_OPTIONS")
    nobody.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert not selects_collector()
    options = "spark.driver.extraJavaOptions -XX:+UseSerialGC\n"
    (tmp_path / "spark-defaults.conf").write_text(options)
    assert selects_collector()


@pytest.mark.usefixtures("nobody")
def test_in_parallel_where_nobody_has() -> None:
    told = subprocess.run(
        [sys.executable, "-c", ASK], capture_output=True, text=True, check=True, timeout=WAIT_S
    )
    assert "PS Scavenge" in told.stdout
