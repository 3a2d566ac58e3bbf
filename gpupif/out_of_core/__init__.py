"""Tables larger than memory: files are encoded once, partitioned on disk, and scored partition by partition."""
