"""Close to the processor: the compile decorators, vector instructions, prefetching."""
