macro_rules! m { ($x:expr) -> { $x } }
