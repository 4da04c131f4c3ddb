a & ; b
