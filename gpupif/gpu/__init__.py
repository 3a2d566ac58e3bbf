"""The array and frame libraries of a GPU, behind one interface; kernels compiled and launched."""
