const n = [0, 1.5, .5, 5., 1e10, 1E-3, 0xFF, 0b10, 0o17, 017, 1_000.000_1, 123n, 0xFFn, 1..toString(), 1.5.toFixed()]
const s = ["a\"b", 'c\'d', "line\
continued", "\u{1F600}\x41", "ünïcödé", ""]
const c = [true, false, null, undefined, this, , ,]
const ünï = 1, $ = 2, _ = 3, a1 = 4, 変数 = 6
