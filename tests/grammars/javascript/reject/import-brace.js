import { a from "a"
