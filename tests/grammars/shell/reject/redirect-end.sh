a >
