import { isExpression, isPassword, passwordName, passwordTriggers } from './namedValues.ts'
import { noMatches, type SecretMatch, type SecretRule } from './rule.ts'
import { isMixed, isPlaceholder } from './values.ts'

const opening = '["\'`*“‘«„「]{0,3}'
const closing = '["\'`*”’»“」]{0,3}'
const value = '([^\\s"\'`“”‘’«»„「」⟨，。；、]{4,100})'
/** ASCII between ideographs, which need no spaces. */
const asciiValue = '([!#-&(-_a-~]{4,100})'

/** "I changed my password from … to …", in the languages that have such a form. */
const change = new RegExp(
  `(?:${passwordName})(?:(?: [\\p{L}'’]{1,14}){0,4} (?:from|von|vom|de|da|van|z|с|со) ${opening}${value}${closing}` +
    ` (?:to|into|auf|zu|in|à|en|par|a|por|para|naar|na|на) ${opening}${value}` +
    `|[ ]?[从從由を를을][ ]?${opening}${asciiValue}${closing}[ ]?(?:改|换|換|变|變|更|修|から|에서)[^\\s!-~「]{0,4}[ ]?${opening}${asciiValue})`,
  'iuyd',
)
const changeVerb =
  /chang|reset|updat|rotat|switch|replac|modifi|änder|setzt|cambi|mud|alter|troc|zmien|verander|gewijzig|смени|измени|поменя|改|换|換|变|變|から|에서/i
const maxVerbDistance = 80

const trailingPunctuation = /(?<![.,:;?)\]}。，；？])[.,:;?)\]}。，；？]+$/
const address = /^v?(?=\d*[.:/-])[\d.:/-]+$|@[\w-]+\.\w|^\w+:\/\//

/** True for a value that cannot be a word of the sentence. */
const isUnlikeWords = (text: string): boolean =>
  (isMixed(text) || /^\d{4,}$/.test(text) || /^[\p{L}\d]+[!@#$%^&*~+=]+[\p{L}\d]/u.test(text)) &&
  !address.test(text) &&
  !isPlaceholder(text) &&
  !isExpression(text)
const isPossible = (text: string): boolean =>
  text.length > 3 && isPassword(text, 'assigned', true, true) && !isPlaceholder(text) && !address.test(text)

/** Finds the old and the new password of a sentence. */
function findChange(text: string, at: number): readonly SecretMatch[] {
  change.lastIndex = at
  const match = change.exec(text)
  if (match?.indices === undefined) return noMatches
  const found = match.indices.slice(1).flatMap((range): readonly SecretMatch[] => {
    if (range === undefined) return []
    const [start, end] = range
    const length = text.slice(start, end).replace(trailingPunctuation, '').length
    return [{ kind: 'password', start, end: start + length }]
  })
  const values = found.map(({ start, end }) => text.slice(start, end))
  const around = text.slice(Math.max(0, at - maxVerbDistance), change.lastIndex + maxVerbDistance)
  return changeVerb.test(around) && values.some(isUnlikeWords) && values.every(isPossible) ? found : noMatches
}

/** "… the new one is …", after a sentence about a password. */
const next = new RegExp(
  '(?:(?:old|new|previous|current|other) one (?:is|was|used to be)(?: now| still)?' +
    "|it (?:is now|used to be)|it['’]s now|now it(?: is|['’]s)" +
    '|(?:neues?|altes?) (?:ist|lautet|war|heißt)(?: jetzt| nun)?' +
    "|(?:nouveau|ancien) (?:est|était|c['’]est)|(?:nuev|antigu|viej)[ao] (?:es|era)(?: ahora)?" +
    '|(?:nova|antiga) (?:é|era)(?: agora)?|(?:nuova|vecchia) (?:è|era)(?: ora| adesso)?' +
    '|(?:nieuwe|oude) (?:is|was)(?: nu)?|(?:nowe|stare) (?:to|jest)|(?:новый|старый)(?: [-–—]| это| был)?' +
    `|(?:新|旧|舊)的是|(?:新しい|古い)(?:の|方)は|(?:새|이전) (?:것|거)(?:은|는)):?[ ]?${opening}(?:${asciiValue}|${value})`,
  'iugd',
)
const maxNextDistance = 160

function findNext(text: string, at: number): readonly SecretMatch[] | number {
  // Passwords named within the first half are skipped: what may follow them is in the second half.
  const matches = text.slice(at, at + 2 * maxNextDistance).matchAll(next)
  const found = [...matches].flatMap(({ indices }): readonly SecretMatch[] => {
    const [start, end] = indices?.[1] ?? indices?.[2] ?? [0, 0]
    const value = text.slice(at + start, at + end).replace(trailingPunctuation, '')
    return isUnlikeWords(value) ? [{ kind: 'password', start: at + start, end: at + start + value.length }] : []
  })
  return found.length > 0 ? found : at + maxNextDistance
}

/** Finds passwords in sentences about their change. */
export const changedRules: readonly SecretRule[] = [
  { name: 'changed password', triggers: passwordTriggers, find: findChange },
  { name: 'next password', triggers: passwordTriggers, find: findNext },
]
