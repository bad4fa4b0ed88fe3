import { it } from 'vitest'

/**
 * Declares a test that proves one or more requirement rows. Pass the ids as literals: the coverage test finds them by
 * parsing.
 *
 * @example
 * verifies('E-07', 'append › over the message limit › keeps the first message', () => { … })
 */
export function verifies(
  rows: string | readonly string[],
  name: string,
  test: () => void | Promise<void>,
  timeout?: number,
): void {
  const ids = typeof rows === 'string' ? [rows] : rows
  it(`[${ids.join(' ')}] ${name}`, test, timeout)
}
