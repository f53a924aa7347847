"""The experiments of Hu, Jin, Chen, Zhang and Zhuo on events of moving objects, and our own.

`run` names them; `figures/` holds one module each. `scenarios` makes the paper's two; `methods`
are its two versions and ours, `silence` what safe regions keep back; `measuring` times them and
compares their answers with brute force; `published` holds the paper's numbers.
"""
