echo ${a
