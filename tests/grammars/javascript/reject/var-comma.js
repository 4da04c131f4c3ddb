var a,
