"""The format of a file of machine code: nothing in it is executed while it is read.

A file has one form of one kernel, for arguments of certain types. It starts with `MAGIC`, the
CRC-32 of all that follows, and three lengths: of a header in JSON, of the machine code, and of
LLVM's bitcode. Pickles would run code of their own on loading; here only the machine code runs, and
only files from folders that nobody else can write to are loaded.
"""

from __future__ import annotations

import enum
import json
import struct
import zlib
from dataclasses import asdict, dataclass, field
from typing import Any

SUFFIX = ".kernel"
MAGIC = b"Fencepost kernel 1\n"
_SIZES = struct.Struct("<IQQQ")


class Form(enum.Enum):
    """What a kernel is compiled to."""

    CALLABLE = "callable"
    """Machine code that Python calls."""

    LATE = "late"
    """Machine code that other kernels call, found when it is first called."""

    LINKABLE = "linkable"
    """Bitcode, which is linked into the kernels that call it and optimised there."""


@dataclass(frozen=True)
class Header:
    """What is known of a compiled kernel beside its code."""

    module: str
    name: str
    mangled_name: str
    parameters: list[str]
    types: list[list[Any]]
    """A table of types, see `type_text`."""

    arguments: list[int]
    """The types of the arguments, by their places in the table."""

    returns: int
    late_calls: list[list[Any]]
    """The kernels that are called late: module, name, and the types of the arguments."""

    environments: list[list[Any]]
    """Numba's environments that the code refers to: module, name, and the dtypes of results."""

    environment: str = ""
    """The name of the kernel's own environment."""


@dataclass(frozen=True)
class CodeFile:
    """The content of a file."""

    header: Header
    machine_code: bytes = field(default=b"", repr=False)
    bitcode: bytes = field(default=b"", repr=False)

    def to_bytes(self) -> bytes:
        """Return the file's bytes."""
        header = json.dumps(asdict(self.header), separators=(",", ":")).encode()
        body = b"".join((header, self.machine_code, self.bitcode))
        sizes = _SIZES.pack(
            zlib.crc32(body), len(header), len(self.machine_code), len(self.bitcode)
        )
        return MAGIC + sizes + body

    @classmethod
    def from_bytes(cls, data: bytes) -> CodeFile:
        """Read a file. Raise ValueError, saying what is wrong, if it is damaged."""
        start = len(MAGIC) + _SIZES.size
        if not data.startswith(MAGIC) or len(data) < start:
            raise ValueError("it is no file of machine code of this version")
        checksum, header_size, code_size, bitcode_size = _SIZES.unpack(data[len(MAGIC) : start])
        body = data[start:]
        if len(body) != header_size + code_size + bitcode_size:
            raise ValueError(f"it has {len(data):,} bytes, and should have another number of them")
        if zlib.crc32(body) != checksum:
            raise ValueError("its checksum does not match")
        code_end = header_size + code_size
        return cls(
            header=Header(**json.loads(body[:header_size])),
            machine_code=body[header_size:code_end],
            bitcode=body[code_end:],
        )
