"""The CUDA engine: cohorts are found and scored on GPUs."""
