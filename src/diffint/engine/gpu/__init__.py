"""The network on a CUDA GPU, with Triton kernels: all runs in one launch, many steps in one graph.

`training` plans and runs the loop, `launch` has the state on the device and the captured graphs,
`intervals` the kernels of the interval layer, `decoder` those of decoder, loss and Adam, `plain`
the parts done by torch, `blocks` the tile sizes. Imports torch and Triton, so import it only when a
GPU is used.
"""
