"""The processors that machine code is made for, and those whose code this machine can run.

Machine code is kept apart by processor. Code that is compiled on demand is for the very processor
of the machine. Code in a wheel is for a baseline: instructions that many processors have.

`NUMBA_CPU_NAME` and `NUMBA_CPU_FEATURES` together choose another processor, as Numba documents. The
features then also bound what is loaded: code that needs an instruction which they lack is not.
"""

from __future__ import annotations

import functools
import hashlib
import platform
from dataclasses import dataclass

import numba

from fencepost.kernels.runtime.numba_internals import llvm


@dataclass(frozen=True)
class Processor:
    """A processor that machine code is made for."""

    name: str
    """The name of its folder."""

    llvm_name: str
    """What LLVM calls it."""

    features: frozenset[str]
    """The features, by LLVM's names, that a machine needs to run its code."""

    def environment(self) -> dict[str, str]:
        """Return the variables with which a process compiles for this processor.

        The name alone would leave all features of the host on.
        """
        missing = sorted(llvm.get_host_cpu_features().keys() - self.features)
        features = [f"+{name}" for name in sorted(self.features)]
        features += [f"-{name}" for name in missing]
        return {"NUMBA_CPU_NAME": self.llvm_name, "NUMBA_CPU_FEATURES": ",".join(features)}


_X86_64 = frozenset("64bit cmov cx8 fxsr mmx sse sse2".split())
_X86_64_V2 = _X86_64 | set("cx16 crc32 popcnt sahf sse3 sse4.1 sse4.2 ssse3".split())
_X86_64_V3 = _X86_64_V2 | set("avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave".split())

BASELINES = {
    "x86_64": (
        Processor("x86_64_v3", "x86-64-v3", _X86_64_V3),
        Processor("x86_64", "x86-64", _X86_64),
    ),
    "aarch64": (Processor("aarch64", "generic", frozenset({"fp-armv8", "neon"})),),
}
"""By machine, the processors that wheels have code for, the best first."""


@dataclass
class _Choice:
    native_only: bool = False


_choice = _Choice()


def use_native_code_only() -> None:
    """Ignore code for baselines from now on, so that code for this very processor is compiled."""
    _choice.native_only = True
    usable_processors.cache_clear()


def host_features() -> frozenset[str]:
    """Return the features that code in this process may use."""
    chosen = numba.config.CPU_FEATURES
    if chosen is not None:
        return frozenset(part[1:] for part in chosen.split(",") if part.startswith("+"))
    return frozenset(name for name, present in llvm.get_host_cpu_features().items() if present)


@functools.cache
def compiled_processor() -> Processor:
    """Return the processor that this process compiles for."""
    features = host_features()
    name = numba.config.CPU_NAME or llvm.get_host_cpu_name()
    for baseline in _baselines():
        if (name, features) == (baseline.llvm_name, baseline.features):
            return baseline
    digest = hashlib.sha256(",".join(sorted(features)).encode()).hexdigest()[:8]
    return Processor(f"{name}-{digest}", name, features)


@functools.cache
def usable_processors() -> tuple[Processor, ...]:
    """Return the processors whose code this process may run, the best first."""
    compiled = compiled_processor()
    if _choice.native_only:
        return (compiled,)
    features = host_features()
    baselines = [each for each in _baselines() if each.features <= features]
    return tuple(dict.fromkeys([compiled, *baselines]))


def _baselines() -> tuple[Processor, ...]:
    return BASELINES.get(platform.machine(), ())
