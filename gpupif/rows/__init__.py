"""Equal rows, exactly: keys of several columns, distinct rows, and partitions that hold equal rows whole."""
