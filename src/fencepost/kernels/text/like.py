"""SQL's LIKE, and the order of strings, on UTF-8 bytes.

In a pattern `%` stands for any run of characters, `_` for exactly one, and a backslash makes the
next character plain. `compile_pattern` turns it into bytes in which all of that is settled: two
values that UTF-8 never uses stand for the wildcards, every other byte for itself.
"""

from __future__ import annotations

from fencepost.kernels.runtime.compilation import inlined, no_refcount

ANY_RUN, ONE = 0xFF, 0xFE

# A byte that does not begin a character has 10 as its two highest bits.
_HIGHEST_TWO, _CONTINUES = 0b1100_0000, 0b1000_0000


def compile_pattern(pattern: str) -> bytes:
    """The pattern as `like` takes it; patterns that mean the same become the same.

    A backslash at the very end is plain. Of wildcards in a row, each `_` comes first and then at
    most one `%`. Lone surrogates are let through.
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


@no_refcount
def like(pattern, pattern_low, pattern_high, text, low, high):
    """Whether the whole of text[low:high] fits the compiled pattern[pattern_low:pattern_high].

    On a mismatch the last run takes in one character more; earlier runs need not be tried again.
    So the steps are at most the text's length times that of the longest piece between two runs.
    """
    p = pattern_low
    t = low
    after_run = -1  # where the pattern goes on after its last run; -1 before any
    run_stop = low  # where that run ends in the text
    while t < high:
        if p < pattern_high:
            wanted = pattern[p]
            if wanted == ANY_RUN:
                p += 1
                if p == pattern_high:
                    return True
                after_run = p
                run_stop = t
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
        run_stop = _next_character(text, run_stop, high)
        p = after_run
        t = run_stop
    return p == pattern_high or (p + 1 == pattern_high and pattern[p] == ANY_RUN)


@inlined
def _next_character(text, t, high):
    t += 1
    while t < high and text[t] & _HIGHEST_TWO == _CONTINUES:
        t += 1
    return t


@no_refcount
def compare(some, low, high, others, other_low, other_high):
    """-1, 0 or 1: how two strings are ordered, by bytes, which is by code points."""
    length = high - low
    other_length = other_high - other_low
    for k in range(min(length, other_length)):
        a = some[low + k]
        b = others[other_low + k]
        if a != b:
            return -1 if a < b else 1
    return (length > other_length) - (length < other_length)
