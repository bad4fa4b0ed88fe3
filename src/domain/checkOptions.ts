import { type Check, describeValue, isObject, MemoryError, shortenText } from './error.ts'

/** Checks of all options of a method. The type makes sure that none is left out. */
export type OptionChecks<T> = { readonly [Option in keyof T]-?: Check }

/**
 * Throws `bad-option` unless `value` is an object with no other options than these, each missing or valid. Unknown
 * options are errors, because a misspelt one could change what the call means: `forget` without its message ids
 * forgets a session.
 *
 * @example
 * checkOptions<TranscriptOptions>('transcript', options, { after: integerAtLeast(0), limit: integerAtLeast(0), newest: trueOrFalse })
 */
export function checkOptions<T extends object>(method: string, value: unknown, checks: OptionChecks<T>): void {
  if (!isObject(value))
    throw new MemoryError('bad-option', `${method} takes an object, not ${describeValue(value, 60)}.`, {
      param: method,
    })
  const names = Object.keys(checks)
  // Includes the options of a prototype.
  for (const name in value) {
    if (Object.hasOwn(checks, name) && Object.hasOwn(value, name)) continue
    const problem = Object.hasOwn(checks, name)
      ? `The option ${name} of ${method} is inherited. Pass an object of its own.`
      : `Unknown option of ${method}: ${describeUnknownName(name, names)}`
    throw new MemoryError('bad-option', problem, { param: shortenText(name, maxShownCharacters) })
  }
  for (const [name, check] of Object.entries<Check>(checks))
    if (value[name] !== undefined) runCheck(check, value[name], name)
}

function runCheck(check: Check, value: unknown, name: string): void {
  try {
    check(value, name)
  } catch (error) {
    // The checks of profile fields serve for options as well.
    if (!(error instanceof MemoryError) || error.code !== 'bad-profile') throw error
    throw new MemoryError('bad-option', error.message, { param: error.param ?? name })
  }
}

const maxShownCharacters = 40

/** Formats an unknown name with the known ones: `"mesages". Did you mean messages? Use one of: key, messages.` */
export function describeUnknownName(name: string, known: readonly string[]): string {
  const nearest = findNearestName(name, known)
  const hint = nearest === undefined ? '' : ` Did you mean ${nearest}?`
  const remedy = known.length === 0 ? 'There are none.' : `Use one of: ${known.join(', ')}.`
  return `${JSON.stringify(shortenText(name, maxShownCharacters))}.${hint} ${remedy}`
}

/** Returns the known name that was most likely meant: one that begins alike, or differs in few letters. */
function findNearestName(name: string, known: readonly string[]): string | undefined {
  const plain = toPlainName(name.slice(0, maxShownCharacters))
  let nearest: string | undefined
  let smallest = 3
  for (const candidate of known) {
    const other = toPlainName(candidate)
    const isPart = plain.length > 2 && (other.startsWith(plain) || plain.startsWith(other))
    const distance = Math.min(countEdits(plain, other), isPart ? 1 : smallest)
    if (distance >= smallest || distance * 3 > plain.length) continue
    nearest = candidate
    smallest = distance
  }
  return nearest
}

const toPlainName = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, '')

/** Counts the letters to insert, delete or replace to turn one word into the other. */
export function countEdits(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const replaced = (previous[column - 1] as number) + (a[row - 1] === b[column - 1] ? 0 : 1)
      current.push(Math.min(replaced, (previous[column] as number) + 1, (current[column - 1] as number) + 1))
    }
    previous = current
  }
  return previous[b.length] as number
}
