a @ b
