"""The libraries of arrays and frames on a GPU, with one interface, and compilation and launch of kernels."""
