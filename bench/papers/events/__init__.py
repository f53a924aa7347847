"""The experiments of Hu, Jin, Chen, Zhang and Zhuo on events of moving objects, and our own."""
