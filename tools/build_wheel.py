"""Build the source distribution and a wheel that has the machine code of every kernel.

The kernels are compiled for each baseline of this machine's architecture (`BASELINES` of
`fencepost.kernels.runtime.processors`), for the running versions of Python and Numba. Bitcode,
which is needed only to compile other kernels, stays out of the wheel.

    python -m tools.build_wheel --out dist
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fencepost.kernels.runtime.code_files import SUFFIX, CodeFile
from fencepost.kernels.runtime.code_folders import VERSIONS
from fencepost.kernels.runtime.processors import BASELINES, Processor, host_features

ROOT = Path(__file__).resolve().parents[1]


def compile_kernels(processor: Processor, folder: Path) -> None:
    """Compile all kernels for a processor; their files are in `folder / VERSIONS`."""
    own = {
        "FENCEPOST_CACHE_DIR": str(folder),
        "XDG_CACHE_HOME": str(folder / "user"),  # with nothing in it
        "PYTHONPATH": str(ROOT / "src"),
    }
    command = [sys.executable, "-m", "fencepost.cli", "warmup"]
    subprocess.run(command, env={**os.environ, **own, **processor.environment()}, check=True)


def collect(compiled: Path, shipped: Path) -> tuple[int, int]:
    """Copy what has machine code. Return the number of files and of bytes."""
    files = size = 0
    for path in sorted((compiled / VERSIONS).rglob(f"*{SUFFIX}")):
        if CodeFile.from_bytes(path.read_bytes()).machine_code:
            target = shipped / path.relative_to(compiled)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            files += 1
            size += target.stat().st_size
    return files, size


def build(out: Path) -> None:
    """Build both distributions."""
    baselines = BASELINES.get(platform.machine(), ())
    usable = [each for each in baselines if each.features <= host_features()]
    if not baselines or len(usable) < len(baselines):
        raise SystemExit(
            f"a wheel needs a processor that runs the code of all baselines of"
            f" {platform.machine()}: {', '.join(each.name for each in baselines) or 'none yet'}"
        )
    with tempfile.TemporaryDirectory(prefix="fencepost-wheel-") as scratch:
        shipped = Path(scratch) / "machine_code"
        for processor in baselines:
            started = time.monotonic()
            print(f"Compiling kernels for {processor.name} ...", flush=True)
            compiled = Path(scratch) / processor.name
            compile_kernels(processor, compiled)
            files, size = collect(compiled, shipped)
            seconds = time.monotonic() - started
            print(f"  {files} kernels, {size / 1e6:.1f} MB, {seconds:.0f} s", flush=True)
        print(f"Building the distributions in {out} ...", flush=True)
        environment = {**os.environ, "FENCEPOST_MACHINE_CODE": str(shipped)}
        for kind in ("--sdist", "--wheel"):
            command = [sys.executable, "-m", "build", kind, "--outdir", str(out), str(ROOT)]
            subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    for path in sorted(out.iterdir()):
        print(f"  {path.name}: {path.stat().st_size / 1e6:.1f} MB")


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description="Build the wheel with compiled kernels.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder to write to")
    out = parser.parse_args().out
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    build(out.resolve())


if __name__ == "__main__":
    main()
