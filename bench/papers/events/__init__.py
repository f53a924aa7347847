"""The experiments of Hu, Jin, Chen, Zhang and Zhuo on events of moving objects, and our own.

`run` lists the figures; `figures/` has one module for each. `scenarios` makes the paper's two
scenarios. `methods` has the paper's two versions and ours, `silence` the events that objects with
safe regions send. `measuring` times the methods and compares their answers with brute force.
`published` has the paper's numbers.
"""
