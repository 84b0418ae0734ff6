"""Where rows live when they are not in memory: files and pipes, read and written as Arrow record batches."""
