"""Compilation, and arrays as compiled code takes them.

- `compilation`: The `kernel` decorator: compile with Numba, keep the machine code on disk
- `numba_internals`: All that Fencepost takes of Numba beyond what Numba documents as stable, in
  one place
- `prefetch`: Asking for memory before it is read, so that the waits of several reads overlap
- `simd`: Sixteen boxes or numbers compared at once: what a compiler would not make of a loop over
  them
- `struct_references`: Many arrays behind one pointer
"""
