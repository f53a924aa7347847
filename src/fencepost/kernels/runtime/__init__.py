"""The base of all kernels: compilation, references to structs of arrays, SIMD, prefetching.

- `code_cache`: Compiled kernels on disk: read from any folder of code, kept in the user's
- `code_files`: The format of a file of machine code, which runs nothing while it is read
- `code_folders`: Where machine code is looked for and kept, and which folders are trusted
- `compilation`: The decorators of kernels: `kernel`, `no_refcount`, `outlined`, `inlined`
- `compile_session`: What is said while kernels compile, and how an interruption ends it
- `kernel_dispatcher`: Kernels, compiled or loaded in the form in which they are needed
- `late_calls`: Calls of kernels that are found when they are first called
- `numba_internals`: Every undocumented name of Numba that Fencepost uses, in one place
- `prefetch`: Prefetch memory before it is read, so that cache misses overlap
- `processors`: The processors that code is made for, and those whose code can run here
- `simd`: Comparisons of 16 boxes or numbers at once
- `source_hashes`: Hashes of the sources that a kernel depends on
- `struct_references`: References to structs of arrays, which kernels take as one pointer
- `type_text`: The types of kernels' arguments and results as JSON, and back
"""
