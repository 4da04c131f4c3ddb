x ify
