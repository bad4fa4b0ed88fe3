import { cardsIn, mayHoldCards } from './secrets/cards.ts'
import { type FoundSecret, marks } from './secrets/found.ts'
import { hasLongRun } from './secrets/longRun.ts'
import { mayHoldNamed, namedSecretsIn } from './secrets/named.ts'
import { mayHoldPem, pemBlocksIn } from './secrets/pem.ts'
import { mayHoldRequests, requestSecretsIn } from './secrets/requests.ts'
import { shapesIn } from './secrets/shapes.ts'
import { mayHoldTold, toldSecretsIn } from './secrets/told.ts'

export type { FoundSecret, SecretKind } from './secrets/found.ts'

/** Every secret but a long one has one of these beside it or in it; most of what is said has none, and one look tells. What begins alike is tried once. */
const hint =
  /p(?:ass|wd|in)|s(?:e(?:cret|nha|ed)|ign ?in)|token|key|auth|b(?:earer|asic|ackup)|c(?:o(?:ntraseña|okie|de)|v[vc]|redential)|m(?:ot de|nemonic)|пароль|密码|パスワード|identified by|:\/\/|otp|log ?in|recovery|\s-u|--(?:user|---)|\d{4}(?:[ -]\d{4}|\d{9})/i
/** No pattern takes this character for part of a name or of a value. */
const blank = '⟨'
/** What was hidden by a secret next to it is found the next time; four times are enough for all but a text made to defeat this. */
const passes = 4

/** What is looked for, each after a cheap look whether there may be any. */
const searches: readonly (readonly [mayHold: (text: string) => boolean, find: (text: string) => FoundSecret[]])[] = [
  [mayHoldPem, pemBlocksIn],
  [hasLongRun, shapesIn],
  [mayHoldRequests, requestSecretsIn],
  [mayHoldCards, cardsIn],
  [mayHoldTold, toldSecretsIn],
  [mayHoldNamed, namedSecretsIn],
]

/**
 * Where secrets stand in a text, in order, not overlapping: [start, end) is exactly what must be replaced.
 *
 * @example
 * findSecrets('my password is hunter2') // [{ kind: 'password', start: 15, end: 22 }]
 */
export function findSecrets(text: string): readonly FoundSecret[] {
  if (!hasLongRun(text) && !hint.test(text)) return []
  const found: FoundSecret[] = []
  let rest = text.replace(marks, ({ length }) => blank.repeat(length))
  for (let pass = 0; pass < passes; pass++) {
    const more = joined(searches.flatMap(([mayHold, find]) => (mayHold(rest) ? find(rest) : [])))
    if (more.length === 0) break
    found.push(...more)
    rest = without(rest, more)
  }
  return joined(found)
}

function without(text: string, found: readonly FoundSecret[]): string {
  let kept = ''
  let reached = 0
  for (const { start, end } of found) {
    kept += text.slice(reached, start) + blank.repeat(end - start)
    reached = end
  }
  return kept + text.slice(reached)
}

/** One for those that overlap, so that no part of either is left; of two alike the first in the list says what it is. */
function joined(found: readonly FoundSecret[]): FoundSecret[] {
  const kept: FoundSecret[] = []
  for (const secret of [...found].sort((left, right) => left.start - right.start || right.end - left.end)) {
    const last = kept.at(-1)
    if (last === undefined || secret.start >= last.end) kept.push(secret)
    else if (secret.end > last.end) kept[kept.length - 1] = { ...last, end: secret.end }
  }
  return kept
}
