a /* b
