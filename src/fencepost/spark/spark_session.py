"""A quiet Spark session: a local one, or the one that `spark-submit` asks for."""

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

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_JAVA = 17
JVM_OPTIONS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "PYSPARK_SUBMIT_ARGS")
_COLLECTOR = "-XX:+UseParallelGC"  # of few cores, Java's own choice takes a tenth of a job's time
# What is called often Java compiles a second time, with care: a third of its processor time in the
# first jobs of a session. If it waits for ten times as many calls, half of that is left.
_COMPILE_LESS = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
_EVENTS_AT_ONCE = 50_000  # with Spark's own 10,000 a job takes a tenth longer


def session(cores: int = 2, name: str = "fencepost") -> SparkSession:
    """A Spark session that keeps its noise off the terminal.

    It is a local one of so many cores. Where `spark-submit` has started the process, it is on the
    cluster that was named there, with the settings that were given there.

    Raises
    ------
    FencepostError
        If PySpark or a Java of version 17 or later is missing, with the command that installs it.
    """
    _check_java()
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise FencepostError(
            "Spark needs the package pyspark; install it with: pip install 'fencepost[spark]'"
        ) from error
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
            .config("spark.sql.execution.arrow.maxRecordsPerBatch", str(_EVENTS_AT_ONCE))
        )
        options = _COMPILE_LESS if chooses_collector() else (_COLLECTOR, *_COMPILE_LESS)
        builder = builder.config("spark.driver.defaultJavaOptions", " ".join(options))
    with _quiet():
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def submitted() -> bool:
    """Whether `spark-submit` has started this process."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def chooses_collector() -> bool:
    """Whether somebody has chosen how garbage is collected; to Java, two choices are an error."""
    home = os.environ.get("SPARK_CONF_DIR") or f"{os.environ.get('SPARK_HOME', '')}/conf"
    settings = Path(home, "spark-defaults.conf")
    written = settings.read_text(errors="replace") if settings.is_file() else ""
    given = [written, *(os.environ.get(name, "") for name in JVM_OPTIONS)]
    return any("GC" in text for text in given)


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None or not os.path.exists(java):
        raise FencepostError(
            "Spark needs Java 17 or later, and there is none; on Debian or Ubuntu install it "
            "with: apt-get install openjdk-17-jre-headless"
        )
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    words = (answer.stderr + answer.stdout).split('"')
    version = words[1].split(".")[0] if len(words) > 1 else ""
    if version.isdigit() and int(version) < _JAVA:
        raise FencepostError(
            f"Spark needs Java {_JAVA} or later; {java} is version {words[1]}; set JAVA_HOME to a "
            "later one, or install it: apt-get install openjdk-17-jre-headless"
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Send what the Java process prints while it starts to nowhere: it writes past Python."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
