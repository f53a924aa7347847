"""The garbage collector of a local session: the user's choice, or the parallel collector."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.spark.spark_session import JVM_OPTIONS, selects_collector
from tests.waiting import WAIT_S

PRINT_COLLECTORS = """
from fencepost import spark as fps
spark = fps.session(1)
beans = spark._jvm.java.lang.management.ManagementFactory.getGarbageCollectorMXBeans()
print([bean.getName() for bean in beans])
"""


@pytest.fixture
def no_settings(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in (*JVM_OPTIONS, "SPARK_CONF_DIR", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_settings_that_select_a_collector(no_settings: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert not selects_collector()
    no_settings.setenv("JAVA_TOOL_OPTIONS", "-Xmx1g")
    assert not selects_collector()
    no_settings.setenv("JAVA_TOOL_OPTIONS", "-Xmx1g -XX:+UseG1GC")
    assert selects_collector()
    no_settings.delenv("JAVA_TOOL_OPTIONS")
    no_settings.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert not selects_collector()
    options = "spark.driver.extraJavaOptions -XX:+UseSerialGC\n"
    (tmp_path / "spark-defaults.conf").write_text(options)
    assert selects_collector()


@pytest.mark.usefixtures("no_settings")
def test_default_is_the_parallel_collector() -> None:
    told = subprocess.run(
        [sys.executable, "-c", PRINT_COLLECTORS],
        capture_output=True,
        text=True,
        check=True,
        timeout=WAIT_S,
    )
    assert "PS Scavenge" in told.stdout
