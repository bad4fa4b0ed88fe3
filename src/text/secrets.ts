import { cardsIn } from './secrets/cards.ts'
import type { FoundSecret } from './secrets/found.ts'
import { namedSecretsIn } from './secrets/named.ts'
import { pemBlocksIn } from './secrets/pem.ts'
import { requestSecretsIn } from './secrets/requests.ts'
import { shapesIn } from './secrets/shapes.ts'
import { toldSecretsIn } from './secrets/told.ts'

export type { FoundSecret, SecretKind } from './secrets/found.ts'

/** What stands in for a secret that was found before. */
const mark = /⟨secret:\w{1,64}⟩/g

/**
 * Where secrets stand in a text, in order, not overlapping: [start, end) is exactly what must be replaced.
 *
 * @example
 * findSecrets('my password is hunter2') // [{ kind: 'password', start: 15, end: 22 }]
 */
export function findSecrets(text: string): readonly FoundSecret[] {
  // Nothing of a mark, its number least of all, is a name or a value; no pattern takes this character for one.
  const rest = text.replace(mark, ({ length }) => '⟨'.repeat(length))
  return joined([...pemBlocksIn(rest), ...shapesIn(rest), ...requestSecretsIn(rest), ...cardsIn(rest), ...toldSecretsIn(rest), ...namedSecretsIn(rest)])
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
