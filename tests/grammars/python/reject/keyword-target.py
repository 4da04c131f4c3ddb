if = 3
