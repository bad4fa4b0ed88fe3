import { type Check, fields, reject } from '../domain/checks.ts'

/** Every field of a type with its check; leaving one out, or one that the type does not have, does not compile. */
type Shape<T> = { readonly [K in keyof T & string as object extends Pick<T, K> ? `${K}?` : K]-?: Check }

/** A check that what stands on a line has exactly the fields of a type. */
export const shaped = <T>(shape: Shape<T>): Check => fields(shape)

/** Text, which may be empty. */
export const anyText: Check = (value, at) => {
  if (typeof value !== 'string') reject(at, value, 'text')
}
