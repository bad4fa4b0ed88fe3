import {
  type Check,
  fields,
  flag,
  isObject,
  listOf,
  number,
  oneOf,
  optional,
  reject,
  share,
  text,
  whole,
} from './checks.ts'
import {
  type Band,
  framings,
  type Learning,
  type Lifetime,
  type Profile,
  type Rule,
  type Tail,
  tokenizerNames,
} from './profile.ts'

const renderStep: Check = (value, path) => {
  const as = isObject(value) ? value.as : undefined
  const extra: Record<string, Check> =
    as === 'clip' ? { characters: whole(1) } : as === 'fit' ? { tokens: optional(whole(1)) } : {}
  fields({
    as: oneOf('whole', 'squeeze', 'uncomment', 'digest', 'sections', 'json', 'clip', 'fit'),
    upTo: optional(share()),
    ...extra,
  })(value, path)
}

const tail = fields<Tail>({
  low: share(),
  high: share(),
  all: share(),
  scarce: fields<Tail['scarce']>({ budget: whole(0), question: share(), otherwise: share() }),
})

/** Accepts an object of one of several shapes, chosen by the first of their field names that it has. */
const byField =
  (shapes: Readonly<Record<string, Check>>): Check =>
  (value, path) => {
    const name = isObject(value) ? Object.keys(shapes).find((field) => Object.hasOwn(value, field)) : undefined
    if (name === undefined) reject(path, value, `an object with one of ${Object.keys(shapes).join(', ')}`)
    shapes[name]?.(value, path)
  }

const claim = byField({
  first: fields({ first: whole(1) }),
  lastTokens: fields({ lastTokens: whole(1), uncovered: optional(flag) }),
  last: fields({ last: whole(1), uncovered: optional(flag) }),
  tail: fields({ tail }),
  rest: fields({ rest: flag }),
  recalled: fields({ recalled: fields({ limit: whole(1) }) }),
  kind: fields({
    kind: oneOf('summary', 'fact', 'knowledge', 'item'),
    top: optional(whole(1)),
    atLeast: optional(number),
    only: optional(listOf(text)),
    except: optional(listOf(text)),
  }),
})

const when = byField({
  tokens: fields({ tokens: whole(1) }),
  usage: fields({ usage: share() }),
  messages: fields({ messages: whole(1) }),
  age: fields({ age: whole(1) }),
  every: fields({ every: whole(1) }),
})

const wordRanges = listOf((value, path) => {
  listOf(whole(1), 2)(value, path)
  const [min, max, ...others] = value as number[]
  if (others.length > 0 || (min as number) > (max as number))
    reject(path, value, 'two numbers of words, the smaller one first')
}, 1)
const keep = byField({ tokens: fields({ tokens: whole(1) }), usage: fields({ usage: share() }) })

const summaryTasks: Readonly<Record<string, Check>> = {
  progressive: fields({ summarise: oneOf('progressive'), words: wordRanges, keep, facts: flag }),
  hour: fields({ summarise: oneOf('hour'), batch: whole(1), keep: whole(1), share: share() }),
  session: fields({ summarise: oneOf('session'), share: share() }),
}
const task = byField({
  summarise: (value, path) => {
    const tier = isObject(value) ? value.summarise : undefined
    oneOf(...Object.keys(summaryTasks))(tier, `${path}.summarise`)
    summaryTasks[tier as string]?.(value, path)
  },
  optimise: fields({ optimise: oneOf('session') }),
  age: fields({ age: oneOf('knowledge') }),
})

const bandShare: Check = (value, path) =>
  isObject(value) ? fields({ withCode: share(true), without: share(true) })(value, path) : share()(value, path)

const maxShare: Check = (value, path) =>
  isObject(value)
    ? fields({ budget: whole(1), upTo: share(true), beyond: share(true) })(value, path)
    : share()(value, path)

const band = fields<Band>({
  name: text,
  claim,
  ladder: listOf(renderStep, 1),
  fill: number,
  show: oneOf('turns', 'block'),
  heading: optional(text),
  label: optional(text),
  share: optional(bandShare),
  maxShare: optional(maxShare),
  max: optional(whole(1)),
  patience: optional(whole(0)),
  volatile: optional(flag),
})

const permission = oneOf('yes', 'ask', 'no')

const profile = fields<Profile>({
  name: text,
  durability: oneOf('ram', 'durable'),
  budget: whole(1),
  tokenizer: oneOf(...tokenizerNames),
  framing: oneOf(...framings),
  sees: listOf(oneOf('session', 'scope', 'person'), 1),
  trigger: optional(share()),
  cap: optional(whole(16)),
  secrets: oneOf('mask', 'hide', 'keep'),
  learns: fields<Learning>({ user: permission, assistant: permission, tool: permission }),
  bands: listOf(band, 1),
  upkeep: listOf(fields<Rule>({ when, do: task, blocking: optional(flag) })),
  lifetime: fields<Lifetime>({
    idle: optional(whole(1)),
    age: optional(whole(1)),
    messages: optional(whole(2)),
    bytes: optional(whole(1)),
    sessions: optional(whole(1)),
    sessionsPerScope: optional(whole(1)),
    whenFull: oneOf('evict', 'refuse'),
  }),
})

/**
 * Validates a profile from outside and returns a copy.
 *
 * @throws MemoryError `bad-profile`; the message names the field and its valid values.
 * @example
 * parseProfile({ ...profiles.thread, name: 'small', budget: 4_000 })
 */
export function parseProfile(value: unknown): Profile {
  profile(value, 'profile')
  const { bands } = value as Profile
  const names = bands.map(({ name }) => name)
  bands.forEach((band, index) => {
    const path = `profile.bands[${index}]`
    if (names.indexOf(band.name) !== index)
      reject(`${path}.name`, band.name, 'different from the names of the other bands')
    checkBand(band, path)
  })
  if (bands.filter(({ claim }) => 'rest' in claim).length > 1)
    reject('profile.bands', names, 'a list with at most one band that claims the rest')
  return structuredClone(value as Profile)
}

/** Checks constraints between fields; headings and labels must not blur the boundary between two entries. */
function checkBand({ heading, label, claim, show: renderAs }: Band, path: string): void {
  if (heading !== undefined && !/^[^\s/].*$/.test(heading))
    reject(`${path}.heading`, heading, 'one line that begins with neither white space nor a slash')
  if (label !== undefined && !/^[^\s/].* $/.test(label))
    reject(`${path}.label`, label, 'one line that begins with neither white space nor a slash and ends with a space')
  if ('tail' in claim && claim.tail.low >= claim.tail.high)
    reject(`${path}.claim.tail.low`, claim.tail.low, `less than high, which is ${claim.tail.high}`)
  if (('kind' in claim || 'recalled' in claim) && renderAs === 'turns')
    reject(`${path}.show`, renderAs, 'block: only messages can be rendered as turns')
}
