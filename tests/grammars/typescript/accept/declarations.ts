import type { A } from 'a'
import { type B, C, type D as E } from 'b'
import type F from 'c'
import g = require('g')
import H = I.J
import type from 'x'
export type { A }
export type * from 'b'
export { type B, C }
export = x
export as namespace Y
export import k = L.M
export default interface N { }
export default abstract class O { }
export abstract class P { }
export declare const q: string
export declare function r(): void
export enum S { a, b = 1, 'c' = 'd', }
export const enum T { }
export type U = string
export namespace V.W { const x = 1 }
declare module 'x' { export default y }
declare module 'z'
declare global { interface Window { a: b } }
declare namespace aa { function b(): c; let d: e }
declare function ab(): void
declare class AC { d(): e; f: g; constructor(h: i) }
declare enum AD { a }
declare let ae: af, ag
declare const ah: ai
namespace aj { }
module ak { }
type = 1
declare = module.exports
namespace.a = interface_
abstract(1)
