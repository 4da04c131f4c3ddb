type A = B extends C ? D
