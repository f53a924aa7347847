"""SQL's LIKE, and the order of strings, on UTF-8 bytes.

In a pattern `%` stands for any run of characters, `_` for exactly one, and a backslash makes the
next character plain. `compile_pattern` turns it into bytes in which all of that is settled: two
values that UTF-8 never uses stand for the wildcards, every other byte for itself.
"""

from __future__ import annotations

import numpy as np

from fencepost.kernels.compiling import inlined, kernel

ANY_RUN = 0xFF
ONE = 0xFE

_CONTINUATION = 0x80  # the two highest bits of a byte that does not begin a character: 10
_HIGHEST_TWO = 0xC0


def compile_pattern(pattern: str) -> bytes:
    """The pattern as `like` takes it.

    A backslash at the very end is plain. A run of wildcards becomes its `_` and then one `%`:
    it means the same.
    """
    compiled = bytearray()
    run_follows = False
    characters = iter(pattern)
    for character in characters:
        if character == "%":
            run_follows = True
        elif character == "_":
            compiled.append(ONE)
        else:
            if run_follows:
                compiled.append(ANY_RUN)
                run_follows = False
            plain = next(characters, "\\") if character == "\\" else character
            compiled += plain.encode("utf-8", "surrogatepass")
    if run_follows:
        compiled.append(ANY_RUN)
    return bytes(compiled)


@kernel
def like(pattern, pattern_low, pattern_high, text, low, high):
    """Whether the whole of text[low:high] fits the compiled pattern[pattern_low:pattern_high].

    On a mismatch the last run takes one character more, earlier runs are never reconsidered: at
    most (length of the text) * (length of the pattern after its last run) steps.
    """
    p = pattern_low
    t = low
    after_run = -1  # where the pattern goes on after the last run, -1 before any
    run_end = low  # how far that run reaches in the text
    while t < high:
        if p < pattern_high:
            wanted = pattern[p]
            if wanted == ANY_RUN:
                p += 1
                if p == pattern_high:
                    return True
                after_run = p
                run_end = t
                continue
            if wanted == text[t]:
                p += 1
                t += 1
                continue
            if wanted == ONE:
                p += 1
                t = _next_character(text, t, high)
                continue
        if after_run < 0:
            return False
        run_end = _next_character(text, run_end, high)
        p = after_run
        t = run_end
    return p == pattern_high or (p + 1 == pattern_high and pattern[p] == ANY_RUN)


@inlined
def _next_character(text, t, high):
    t += 1
    while t < high and text[t] & _HIGHEST_TWO == _CONTINUATION:
        t += 1
    return t


@kernel
def compare(some, low, high, others, other_low, other_high):
    """-1, 0 or 1: the order of two strings, by bytes, which is the order by code points."""
    length = high - low
    other_length = other_high - other_low
    for k in range(min(length, other_length)):
        a = some[low + k]
        b = others[other_low + k]
        if a != b:
            return -1 if a < b else 1
    return (length > other_length) - (length < other_length)
