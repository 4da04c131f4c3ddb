int f(void) { do { } f(); }
