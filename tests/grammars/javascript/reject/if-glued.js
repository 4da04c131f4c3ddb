ifx (a) b
