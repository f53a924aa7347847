"""A build hook that adds compiled kernels to a wheel, and says which machines the wheel is for.

`tools/build_wheel.py` names the folder of compiled kernels in FENCEPOST_MACHINE_CODE. Without it,
as in an editable installation or a build from the source distribution, the wheel has none and is
for any machine.
"""

from __future__ import annotations

import os
import platform
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledKernels(BuildHookInterface[Any]):  # type: ignore[misc]
    """Adds the folder of FENCEPOST_MACHINE_CODE to the package."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Change what is built, as Hatchling asks its hooks to."""
        folder = os.environ.get("FENCEPOST_MACHINE_CODE")
        if not folder or version != "standard":
            return
        python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
        build_data["force_include"][folder] = "fencepost/machine_code"
        build_data["pure_python"] = False
        build_data["tag"] = f"{python}-{python}-manylinux_2_17_{platform.machine()}"
