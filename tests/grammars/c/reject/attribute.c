[[nodiscard] int f(void);
