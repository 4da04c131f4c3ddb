echo $(a
