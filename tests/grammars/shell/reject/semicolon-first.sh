; a
