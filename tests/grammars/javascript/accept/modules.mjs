import 'a'
import a from 'a'
import * as b from "b"
import { c, d as e, default as f, "g h" as i, } from 'c'
import j, { k } from 'd'
import l, * as m from 'e'
import data from './x.json' with { type: 'json' }
import {} from 'f'
import{z}from'z';export{z}from'z';export*from'z'
import from from 'from'
export * from 'a'
export * as n from 'b'
export { a, b as c, d as default, e as 'f g' }
export { default } from 'c'
export { default as x, y } from 'd';
export const p = 1, q = 2
export let { r, s: [t] } = u
export function v() {}
export async function* w() {}
export class X {}
export default class {}
export default function () {}
export default async () => {}
export default { a: 1 }
const z = await import('z')
for await (const y of z()) {}
