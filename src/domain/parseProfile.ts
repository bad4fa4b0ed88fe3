import { type Check, fields, flag, isObject, listOf, number, oneOf, part, reject, text, whole } from './checks.ts'
import { framings, type Profile, tokenizerNames } from './profile.ts'

const rung: Check = (value, at) => {
  const as = isObject(value) ? value.as : undefined
  const extra: Record<string, Check> =
    as === 'clip' ? { characters: whole(1) } : as === 'fit' ? { 'tokens?': whole(1) } : {}
  fields({
    as: oneOf('whole', 'squeeze', 'uncomment', 'digest', 'sections', 'json', 'clip', 'fit'),
    'upTo?': part(),
    ...extra,
  })(value, at)
}

const tail = fields({
  low: part(),
  high: part(),
  all: part(),
  scarce: fields({ budget: whole(0), question: part(), otherwise: part() }),
})

const claims: Readonly<Record<string, Check>> = {
  first: fields({ first: whole(1) }),
  lastTokens: fields({ lastTokens: whole(1), 'uncovered?': flag }),
  last: fields({ last: whole(1), 'uncovered?': flag }),
  tail: fields({ tail }),
  rest: fields({ rest: flag }),
  recalled: fields({ recalled: fields({ limit: whole(1) }) }),
  kind: fields({
    kind: oneOf('summary', 'fact', 'knowledge', 'item'),
    'top?': whole(1),
    'atLeast?': number,
    'only?': listOf(text),
    'except?': listOf(text),
  }),
}

/** The one of several shapes an object has, told by the name of a field. */
const byField =
  (shapes: Readonly<Record<string, Check>>): Check =>
  (value, at) => {
    const name = isObject(value) ? Object.keys(shapes).find((known) => Object.hasOwn(value, known)) : undefined
    if (name === undefined) reject(at, value, `an object with one of ${Object.keys(shapes).join(', ')}`)
    shapes[name]?.(value, at)
  }

const when = byField({
  tokens: fields({ tokens: whole(1) }),
  usage: fields({ usage: part() }),
  messages: fields({ messages: whole(1) }),
  age: fields({ age: whole(1) }),
  every: fields({ every: whole(1) }),
})

const words = listOf((value, at) => {
  listOf(whole(1), 2)(value, at)
  const [least, most, ...others] = value as number[]
  if (others.length > 0 || (least as number) > (most as number))
    reject(at, value, 'two numbers of words, the smaller one first')
}, 1)
const keep = byField({ tokens: fields({ tokens: whole(1) }), usage: fields({ usage: part() }) })

const summaries: Readonly<Record<string, Check>> = {
  progressive: fields({ summarise: oneOf('progressive'), words, keep, facts: flag }),
  hour: fields({ summarise: oneOf('hour'), batch: whole(1), keep: whole(1), share: part() }),
  session: fields({ summarise: oneOf('session'), share: part() }),
}
const task = byField({
  summarise: (value, at) => {
    const tier = isObject(value) ? value.summarise : undefined
    oneOf(...Object.keys(summaries))(tier, `${at}.summarise`)
    summaries[tier as string]?.(value, at)
  },
  optimise: fields({ optimise: oneOf('session') }),
  age: fields({ age: oneOf('knowledge') }),
})

const rule = fields({ when, do: task, 'blocking?': flag })
const permission = oneOf('yes', 'ask', 'no')

const claim = byField(claims)

const share: Check = (value, at) =>
  isObject(value) ? fields({ withCode: part(true), without: part(true) })(value, at) : part()(value, at)

const maxShare: Check = (value, at) =>
  isObject(value) ? fields({ budget: whole(1), upTo: part(true), beyond: part(true) })(value, at) : part()(value, at)

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
  sees: listOf(oneOf('session', 'scope', 'person'), 1),
  'trigger?': part(),
  'cap?': whole(16),
  secrets: oneOf('mask', 'hide', 'keep'),
  learns: fields({ user: permission, assistant: permission, tool: permission }),
  bands: listOf(band, 1),
  upkeep: listOf(rule),
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
    if (names.indexOf(name) !== place)
      reject(`profile.bands[${place}].name`, name, 'different from the names of the other bands')
  })
  checked.bands.forEach((one, place) => {
    checkBand(one, `profile.bands[${place}]`)
  })
  if (checked.bands.filter((one) => 'rest' in one.claim).length > 1)
    reject('profile.bands', names, 'a list with at most one band that claims the rest')
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
