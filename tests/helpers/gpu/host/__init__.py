"""The device code on this machine's CPU: the CUDA engine's kernels, compiled from the IR that a GPU's are made of.

What is as on a device: the types of the arguments, the words that they are packed to, numba-cuda's typing and lowering,
NVIDIA's libdevice. What stands in: LLVM for this CPU in place of NVVM (`ir`, `objects`), fibers for the threads of a
block (`fibers`), copies between guards for the device's arrays (`arrays`), NumPy and pandas for CuPy and cuDF
(`numpy_device`). Threads run one after the other, so that a race shows only as results that depend on their order;
NVVM's own optimisations, and instructions of warps, are not seen. Needs Linux with glibc, 64 bits, and the extra
`cuda-check`.
"""
