"""Starts a Spark session: a local one, or the one that `spark-submit` configured."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.errors import FencepostError
from fencepost.extras import requires_extra

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MIN_JAVA_VERSION = 17
JVM_OPTIONS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "PYSPARK_SUBMIT_ARGS")
_COLLECTOR = "-XX:+UseParallelGC"  # on few cores, Java's default takes a tenth of a job's time
# In the first jobs of a session, Java spends a third of its processor time on compiling hot methods
# a second time, with more optimization. Thresholds ten times as high halve that.
_COMPILER_OPTIONS = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
_RECORDS_PER_BATCH = 50_000  # with Spark's default of 10,000 a job takes a tenth longer


@requires_extra("fencepost.spark", "spark")
def session(cores: int = 2, name: str = "fencepost") -> SparkSession:
    """Return a Spark session that prints no progress and no start-up messages.

    If `spark-submit` started the process, the session runs on the cluster and with the settings
    that were given to `spark-submit`; otherwise it is local.

    Parameters
    ----------
    cores : int
        The number of cores of a local session.
    name : str
        The name of the application.

    Raises
    ------
    FencepostError
        If PySpark or Java 17 or later is missing; the message names the command that installs it.
    """
    from pyspark.sql import SparkSession

    _check_java()
    builder = (
        SparkSession.builder.appName(name)
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.log.level", "ERROR")
    )
    if not submitted():
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = (
            builder.master(f"local[{cores}]")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", str(cores))
            .config("spark.sql.execution.arrow.maxRecordsPerBatch", str(_RECORDS_PER_BATCH))
        )
        options = _COMPILER_OPTIONS if selects_collector() else (_COLLECTOR, *_COMPILER_OPTIONS)
        builder = builder.config("spark.driver.defaultJavaOptions", " ".join(options))
    with _stderr_discarded():
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def submitted() -> bool:
    """Return whether `spark-submit` started this process."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def selects_collector() -> bool:
    """Return whether the user's settings select a garbage collector.

    Java refuses to start when two collectors are selected.
    """
    home = os.environ.get("SPARK_CONF_DIR") or f"{os.environ.get('SPARK_HOME', '')}/conf"
    settings = Path(home, "spark-defaults.conf")
    defaults = settings.read_text(errors="replace") if settings.is_file() else ""
    texts = [defaults, *(os.environ.get(name, "") for name in JVM_OPTIONS)]
    return any("GC" in text for text in texts)


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None or not os.path.exists(java):
        raise FencepostError(
            "Spark needs Java 17 or later, but no Java was found; on Debian or Ubuntu install it "
            "with: apt-get install openjdk-17-jre-headless"
        )
    result = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    words = (result.stderr + result.stdout).split('"')
    version = words[1].split(".")[0] if len(words) > 1 else ""
    if version.isdigit() and int(version) < _MIN_JAVA_VERSION:
        raise FencepostError(
            f"Spark needs Java {_MIN_JAVA_VERSION} or later; {java} is version {words[1]}; set "
            "JAVA_HOME to a later one, or install it: apt-get install openjdk-17-jre-headless"
        )


@contextmanager
def _stderr_discarded() -> Iterator[None]:
    """Discard what the starting Java process prints: it writes to file descriptor 2 directly."""
    sys.stderr.flush()
    saved, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    os.close(null)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(saved, 2)
        os.close(saved)
