x = bt"{a}"
