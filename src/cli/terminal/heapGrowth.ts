import { setFlagsFromString } from 'node:v8'

const flag = '--heap-growing-percent'

/**
 * Lets V8's heap grow by half before the next collection. Under load V8 lets it grow to several times its size, and
 * keeps the pages for good: 900 MB for 200 MB of live objects. A value that the user gave to Node is left alone.
 */
export function limitHeapGrowth(given: readonly string[] = process.execArgv): void {
  if (!given.some((argument) => argument.startsWith(flag))) setFlagsFromString(`${flag}=50`)
}
