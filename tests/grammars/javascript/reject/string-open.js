a = 'b
'
