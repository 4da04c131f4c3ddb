import type { A from "a"
