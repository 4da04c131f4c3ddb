echo $(if a; b)
