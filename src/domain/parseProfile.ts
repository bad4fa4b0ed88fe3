import { type Check, fields, flag, isObject, listOf, number, oneOf, part, reject, text, whole } from './checks.ts'
import { framings, type Profile, tokenizerNames } from './profile.ts'

const rung: Check = (value, at) => {
  const as = isObject(value) ? value.as : undefined
  const extra: Record<string, Check> = as === 'clip' ? { characters: whole(1) } : as === 'fit' ? { 'tokens?': whole(1) } : {}
  fields({ as: oneOf('whole', 'squeeze', 'uncomment', 'digest', 'sections', 'json', 'clip', 'fit'), 'upTo?': part(), ...extra })(value, at)
}

const tail = fields({ low: part(), high: part(), all: part(), scarce: fields({ budget: whole(0), question: part(), otherwise: part() }) })

const claims: Readonly<Record<string, Check>> = {
  first: fields({ first: whole(1) }),
  last: fields({ last: whole(1) }),
  lastTokens: fields({ lastTokens: whole(1) }),
  tail: fields({ tail }),
  rest: fields({ rest: flag }),
  recalled: fields({ recalled: fields({ limit: whole(1) }) }),
  kind: fields({ kind: oneOf('summary', 'fact', 'knowledge', 'item'), 'top?': whole(1), 'atLeast?': number, 'only?': listOf(text), 'except?': listOf(text) }),
}

const claim: Check = (value, at) => {
  const name = isObject(value) ? Object.keys(claims).find((known) => Object.hasOwn(value, known)) : undefined
  if (name === undefined) reject(at, value, `an object with one of ${Object.keys(claims).join(', ')}`)
  claims[name]?.(value, at)
}

const share: Check = (value, at) => (isObject(value) ? fields({ withCode: part(true), without: part(true) })(value, at) : part()(value, at))

const maxShare: Check = (value, at) => (isObject(value) ? fields({ budget: whole(1), upTo: part(), beyond: part() })(value, at) : part()(value, at))

const band = fields({
  name: text,
  claim,
  ladder: listOf(rung, 1),
  fill: number,
  show: oneOf('turns', 'block'),
  'heading?': text,
  'label?': text,
  'share?': share,
  'maxShare?': maxShare,
  'max?': whole(1),
  'patience?': whole(0),
  'volatile?': flag,
})

const profile = fields({
  name: text,
  durability: oneOf('ram', 'durable'),
  budget: whole(1),
  tokenizer: oneOf(...tokenizerNames),
  framing: oneOf(...framings),
  sees: listOf(oneOf('session', 'scope'), 1),
  'trigger?': part(),
  'cap?': whole(16),
  bands: listOf(band, 1),
  lifetime: fields({
    'idle?': whole(1),
    'age?': whole(1),
    'messages?': whole(2),
    'bytes?': whole(1),
    'sessions?': whole(1),
    'sessionsPerScope?': whole(1),
    whenFull: oneOf('evict', 'refuse'),
  }),
})

/**
 * Checks a profile that comes from outside; the error names the field and the fix.
 *
 * @example
 * parseProfile({ ...profiles.thread, name: 'small', budget: 4_000 })
 */
export function parseProfile(value: unknown): Profile {
  profile(value, 'profile')
  const checked = value as Profile
  const names = checked.bands.map((one) => one.name)
  names.forEach((name, place) => {
    if (names.indexOf(name) !== place) reject(`profile.bands[${place}].name`, name, 'different from the names of the other bands')
  })
  checked.bands.forEach((one, place) => {
    checkBand(one, `profile.bands[${place}]`)
  })
  if (checked.bands.filter((one) => 'rest' in one.claim).length > 1) reject('profile.bands', names, 'a list with at most one band that claims the rest')
  return structuredClone(checked)
}

/** What no single field can tell: headings must not blur where one entry ends and the next begins. */
function checkBand(band: Profile['bands'][number], at: string): void {
  if (band.heading !== undefined && !/^[^\s/].*$/.test(band.heading))
    reject(`${at}.heading`, band.heading, 'one line that begins with neither white space nor a slash')
  if (band.label !== undefined && !/^[^\s/].* $/.test(band.label))
    reject(`${at}.label`, band.label, 'one line that begins with neither white space nor a slash and ends with a space')
  if ('tail' in band.claim && band.claim.tail.low >= band.claim.tail.high)
    reject(`${at}.claim.tail.low`, band.claim.tail.low, `less than high, which is ${band.claim.tail.high}`)
  if (('kind' in band.claim || 'recalled' in band.claim) && band.show === 'turns')
    reject(`${at}.show`, band.show, 'block: only messages in their place can be shown as turns')
}
