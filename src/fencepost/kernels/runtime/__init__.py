"""The base of all kernels: compilation, references to structs of arrays, SIMD, prefetching.

- `compilation`: The `kernel` decorator: compile with Numba, keep the machine code on disk
- `numba_internals`: Every undocumented name of Numba that Fencepost uses, in one place
- `prefetch`: Prefetch memory before it is read, so that cache misses overlap
- `simd`: Comparisons of 16 boxes or numbers at once
- `struct_references`: References to structs of arrays, which kernels take as one pointer
"""
