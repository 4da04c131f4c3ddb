  # only

   # comments