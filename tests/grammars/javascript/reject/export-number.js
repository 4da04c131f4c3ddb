export 1
