import { it } from 'vitest'

/** Row ids, as in test/requirements/*.ts: a test that proves a requirement cites it. */
type Cited = string | readonly string[]

/**
 * A test that proves one or more requirement rows. The ids stand in the test's name, where the coverage test finds them.
 *
 * @example
 * verifies('E-07', 'the seed survives the message cap', () => { … })
 */
export function verifies(rows: Cited, promise: string, proof: () => void | Promise<void>, timeout?: number): void {
  const ids = typeof rows === 'string' ? [rows] : rows
  it(`[${ids.join(' ')}] ${promise}`, proof, timeout)
}
