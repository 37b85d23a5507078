"""The network on a CUDA GPU, in Triton: all runs in one launch, many steps in one graph.

`training` plans and runs the loop, `launch` holds the device's state and the captured graphs,
`decoder` the fused kernels of decoder, loss and Adam, `plain` what torch does well enough by
itself, `blocks` the tile sizes. The interval layer's kernels are in `intervals/gpu.py`. Imports
torch and Triton, so it is imported only when a GPU is asked for.
"""
