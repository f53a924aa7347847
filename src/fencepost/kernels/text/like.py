"""SQL's LIKE, and comparison of strings, on UTF-8 bytes.

In a pattern `%` stands for any run of characters, `_` for exactly one character, and a backslash
makes the next character literal. `compile_pattern` resolves these into bytes: two values that do
not occur in UTF-8 are the wildcards, every other byte stands for itself.
"""

from __future__ import annotations

from fencepost.kernels.runtime.compilation import inlined, no_refcount

ANY_RUN, ANY_CHARACTER = 0xFF, 0xFE

# A byte inside a character has 10 as its two highest bits.
_TOP_BITS, _CONTINUATION = 0b1100_0000, 0b1000_0000


def compile_pattern(pattern: str) -> bytes:
    """Return the pattern in the form that `like` takes; equivalent patterns become equal.

    A backslash at the end is literal. Of neighbouring wildcards, each `_` comes first, followed by
    at most one `%`. Lone surrogates are kept.
    """
    compiled = bytearray()
    run_follows = False
    characters = iter(pattern)
    for character in characters:
        if character == "%":
            run_follows = True
        elif character == "_":
            compiled.append(ANY_CHARACTER)
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
    """Return whether text[low:high] matches the compiled pattern[pattern_low:pattern_high].

    After a mismatch the last run is extended by one character; earlier runs need no second try. So
    the number of steps is at most the text's length times the longest piece between two runs.
    """
    p = pattern_low
    t = low
    after_run = -1  # where the pattern continues after its last run; -1 before the first run
    run_stop = low  # where that run ends in the text
    while t < high:
        if p < pattern_high:
            expected = pattern[p]
            if expected == ANY_RUN:
                p += 1
                if p == pattern_high:
                    return True
                after_run = p
                run_stop = t
                continue
            if expected == text[t]:
                p += 1
                t += 1
                continue
            if expected == ANY_CHARACTER:
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
    """Return where the character after the one at t begins."""
    t += 1
    while t < high and text[t] & _TOP_BITS == _CONTINUATION:
        t += 1
    return t


@no_refcount
def compare(text, low, high, other_text, other_low, other_high):
    """Return -1, 0 or 1: the order of two strings by bytes, which is their order by code points."""
    length = high - low
    other_length = other_high - other_low
    for k in range(min(length, other_length)):
        a = text[low + k]
        b = other_text[other_low + k]
        if a != b:
            return -1 if a < b else 1
    return (length > other_length) - (length < other_length)
