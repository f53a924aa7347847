"""Compiled functions: arrays in, arrays or numbers out, nothing raised, nothing allocated per row.

Only NumPy and Numba are imported here. Callers check their input first. Each module holds one
family; `compiling` says how they are compiled and where the machine code is kept.
"""
