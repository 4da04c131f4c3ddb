//! Inner documentation.
#![allow(dead_code)]
/*! Another /* nested /* twice */ */ one. */

use std::{
    collections::{self, HashMap as Map},
    io::{self as _, *},
};
extern crate alloc as other;
pub(crate) use self::inner::Thing;
use ::core::fmt;

/// Outer documentation.
#[derive(Debug, Clone)]
pub struct Pair<'a, T: ?Sized + 'a, const N: usize = 3>
where
    T: Iterator<Item = &'a str>,
    for<'b> &'b T: Into<String>,
{
    /// A field.
    pub(in crate::inner) first: &'a T,
    #[cfg(test)]
    second: [u8; N],
}
struct Unit;
struct Tuple<T>(pub T, Box<dyn Fn(u8) -> Vec<Vec<T>> + Send>)
where
    T: Copy;
enum Kind {
    One = 1,
    Two { a: u8, b: i32 },
    /** Three. */
    Three(String, Option<Box<Kind>>),
}
union Bits {
    int: u32,
    float: f32,
}
const _: () = assert!(size_of::<Unit>() == 0);
static mut COUNTER: [u8; 2 * 4] = [0; 8];
type Alias<T> = Result<T, Box<dyn std::error::Error + 'static>>;
unsafe extern "C" {
    static errno: i32;
    pub safe fn abs(x: i32) -> i32;
    fn printf(format: *const i8, ...) -> i32;
}
pub trait Shape: Send + Sync {
    const SIDES: usize;
    type Item<'a>: Clone
    where
        Self: 'a;
    fn area(&self) -> f64;
    fn name(self: Box<Self>, _: u8) -> String {
        String::new()
    }
}
unsafe impl<T, const N: usize> Shape for Pair<'_, T, { N + 1 }> where T: ?Sized {
    const SIDES: usize = 3;
    type Item<'a> = &'a T where Self: 'a;
    fn area(&self) -> f64 {
        0.5e-3
    }
}
impl<T> !Send for Tuple<T> {}
impl Tuple<u8> {
    pub const fn new(mut self, &(a, ref b): &(u8, u8)) -> impl Iterator<Item = u8> + use<> {
        #![allow(unused)]
        [a, *b].into_iter()
    }
}
pub async unsafe extern "C" fn later<F>(f: F) -> <F as FnOnce<()>>::Output
where
    F: for<'a> FnOnce(&'a str) -> u8,
{
    f("").await
}
macro_rules! vector {
    ($($x:expr),* $(,)?) => {{ let mut v = Vec::new(); $(v.push($x);)* v }};
    (@one $t:tt) => { $t };
}
thread_local! {
    static LOCAL: u8 = 1;
}
vector!(1, 2);
mod inner {
    //! Of the module.
    pub use super::*;
    mod file;
}
