"""The command line of `spark-submit` for a job of Fencepost."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from fencepost.errors import FencepostError

_NAME = "fencepost"  # under which nodes unpack the archive, in the folder that they run in
# In an archive, packages are at the top and kernels in a folder, see docs/cluster.md.
_SHIPPED = {
    "spark.executorEnv.PYTHONPATH": _NAME,
    "spark.executorEnv.FENCEPOST_CACHE_DIR": f"{_NAME}/kernels",
}


def submission(
    job: Sequence[str], master: str, archive: Path | None, settings: Sequence[str]
) -> list[str]:
    """The command for a program and its arguments, or for a command of `fencepost spark`."""
    given = {"spark.pyspark.driver.python": sys.executable}
    for setting in settings:
        key, found, value = setting.partition("=")
        if not found:
            raise FencepostError(f"{setting!r} is no setting of Spark; give --conf KEY=VALUE")
        given[key] = value
    command = [_spark_submit(), "--master", master]
    if archive is not None:
        if not archive.is_file():
            raise FencepostError(
                f"there is no archive {archive}; docs/cluster.md says how to make one"
            )
        command += ["--archives", f"{archive.absolute()}#{_NAME}"]
        given = {**_SHIPPED, **given}
    for key, value in given.items():
        command += ["--conf", f"{key}={value}"]
    program, *arguments = job
    if program.endswith(".py"):
        return [*command, program, *arguments]
    return [*command, str(Path(__file__).parent.parent / "cli.py"), "spark", program, *arguments]


def _spark_submit() -> str:
    """That of SPARK_HOME, or the one that comes with PySpark."""
    home = os.environ.get("SPARK_HOME")
    found = find_spec("pyspark")
    if home is None and (found is None or found.origin is None):
        raise FencepostError(
            "Spark needs the package pyspark; install it with: pip install 'fencepost[spark]'"
        )
    where = Path(home) if home else Path(found.origin).parent  # type: ignore[union-attr,arg-type]
    return str(where / "bin" / "spark-submit")
