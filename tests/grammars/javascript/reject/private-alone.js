a = #b
