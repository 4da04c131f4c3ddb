fn main() -> Result<(), Box<dyn Error>> {
    let a = 1 + 2 * -3 << 4 & !5 | 6 ^ 7;
    let b: Vec<Vec<u8>> = Vec::<Vec<_>>::with_capacity(a as usize >> 1);
    let c = x as u8 as char == 'c' && (y as usize) < 3 || z as i64 <= 4;
    let d = &mut *&&b[..][1..=2];
    let (mut e, ref f, Some(g @ 1..=9 | g @ 20..), [first, .., last]) = whole else { return Err(a.into()) };
    let h = |x: u8, &y| -> u8 { x + y };
    let i = move || async move { future.await? };
    let j = Point { x: 1.0, y: 2., ..Default::default() };
    let k = if let Some(x) = y && x > 3 && let Ok(z) = w { 1 } else if a { 2 } else { 3 } + 4;
    let l = b'a' + b"bytes\x00"[0] + br#"raw " bytes"#[1] + 0xFF_u8 + 0b1010 + 1_000usize as u8;
    let m = r##"raw "# string"##.len() + "continued \
        \u{1F600} \"".len() + c"null".count_bytes();
    let n = <Vec<u8> as IntoIterator>::into_iter(v).map(<_>::from).collect::<Vec<_>>();
    let o = t.0.1 + t.0 .1 + 1.max(2) + 1..2;
    let p = loop { break 'outer 3 };
    x += 1; x <<= 2; x >>= 3; x = y = z;
    (a, _) = (b, c);
    match x {
        0 | 1 if y < 2 => (),
        -1..=1 => {}
        Kind::Two { a, b: ref mut c, .. } => println!("{a} {}", 1),
        Kind::Three(.., s) if s == Foo { a: 1 } => { 1 }.into(),
        "text" | 'c' | b'x' | 1.5 => return,
        &(ref x, y) | &&[x, y, ..] => unsafe { f() }
        #[cfg(test)]
        std::u8::MAX => if x { 1 } else { 2 },
        _ => |x| x,
    }
    'outer: for (i, _) in (0..10).rev().enumerate() {
        while let Some(x) = stack.pop() { continue 'outer; }
        if x == (Foo { a: 1 }) {}
    }
    if x {} else {}
    -1;
    unsafe { f() }.g()?;
    match y {}.method();
    {}
    *x = vec![1; 3];
    let q = a < b && c > d; // not generics
    let r = &raw const x;
    fn nested() {}
    #[rustfmt::skip]
    let s = matches!(x, 'a'..='z' | '_') || x /* comment */ / 2 == 3;
    items! { any tokens => 'lifetime 'c' "s" r#"x"# 1.0e5 #[a] $x / ? @ }
    let t = dyn_call(&|x| x + 1, &mut |_| {});
    const { 1 };
    Ok(())
}
