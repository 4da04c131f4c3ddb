a = `b ${c}
