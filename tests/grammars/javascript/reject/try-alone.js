try {}
