package if
