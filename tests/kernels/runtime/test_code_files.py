"""Files of machine code: what is written is read, and damage is noticed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.kernels.runtime.code_files import MAGIC, CodeFile, Header

HEADER = Header("m", "f", "_Zf", ["a"], [["scalar", "int64"]], [0], 0, [], [], "env")


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_what_is_written_is_read(machine_code: bytes, bitcode: bytes) -> None:
    file = CodeFile(HEADER, machine_code, bitcode)
    assert CodeFile.from_bytes(file.to_bytes()) == file


@given(st.binary(max_size=50), st.data())
def test_any_damage_is_noticed(machine_code: bytes, data: Any) -> None:
    whole = CodeFile(HEADER, machine_code).to_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    flipped = bytes([whole[place] ^ data.draw(st.integers(1, 255))])
    for damaged in (whole[:place] + flipped + whole[place + 1 :], whole[:place], whole + b"\0"):
        with pytest.raises(ValueError, match=r"it (is|has)|its"):
            CodeFile.from_bytes(damaged)


def test_a_pickle_is_no_such_file() -> None:
    with pytest.raises(ValueError, match="no file of machine code"):
        CodeFile.from_bytes(b"\x80\x05" + MAGIC)
