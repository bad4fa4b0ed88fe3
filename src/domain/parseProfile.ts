import {
  type Check,
  fields,
  finiteNumber,
  integerAtLeast,
  isObject,
  listOf,
  nonEmptyText,
  oneOf,
  optional,
  rejectField,
  share,
  trueOrFalse,
} from './error.ts'
import {
  type Band,
  framings,
  type KnowledgePolicy,
  type Lifetime,
  type Profile,
  type Tail,
  tokenizerNames,
  type UpkeepRule,
} from './profile.ts'

const renderStep: Check = (value, path) => {
  const as = isObject(value) ? value.as : undefined
  const extra: Record<string, Check> =
    as === 'clip' ? { characters: integerAtLeast(1) } : as === 'fit' ? { tokens: optional(integerAtLeast(1)) } : {}
  fields({
    as: oneOf('whole', 'squeeze', 'uncomment', 'digest', 'sections', 'json', 'clip', 'fit'),
    upTo: optional(share()),
    ...extra,
  })(value, path)
}

const tail = fields<Tail>({
  low: share(),
  high: share(),
  keepAll: share(),
  smallBudget: fields<Tail['smallBudget']>({
    budget: integerAtLeast(0),
    question: share(),
    statement: share(),
    otherwise: share(),
  }),
})

/** Accepts an object of one of several shapes, chosen by the first of their field names that it has. */
const byField =
  (shapes: Readonly<Record<string, Check>>): Check =>
  (value, path) => {
    const name = isObject(value) ? Object.keys(shapes).find((field) => Object.hasOwn(value, field)) : undefined
    if (name === undefined) rejectField(path, value, `an object with one of ${Object.keys(shapes).join(', ')}`)
    shapes[name]?.(value, path)
  }

const claim = byField({
  first: fields({ first: integerAtLeast(1) }),
  lastTokens: fields({ lastTokens: integerAtLeast(1), uncovered: optional(trueOrFalse) }),
  last: fields({ last: integerAtLeast(1), uncovered: optional(trueOrFalse) }),
  tail: fields({ tail }),
  rest: fields({ rest: trueOrFalse }),
  recalled: fields({ recalled: fields({ limit: integerAtLeast(1) }) }),
  kind: fields({
    kind: oneOf('summary', 'fact', 'knowledge', 'item'),
    top: optional(integerAtLeast(1)),
    atLeast: optional(finiteNumber),
    only: optional(listOf(nonEmptyText)),
    except: optional(listOf(nonEmptyText)),
  }),
})

const when = byField({
  tokens: fields({ tokens: integerAtLeast(1) }),
  usage: fields({ usage: share() }),
  messages: fields({ messages: integerAtLeast(1) }),
  age: fields({ age: integerAtLeast(1) }),
  every: fields({ every: integerAtLeast(1) }),
  turn: fields({ turn: oneOf('finished') }),
})

const wordRanges = listOf((value, path) => {
  listOf(integerAtLeast(1), 2)(value, path)
  const [min, max, ...others] = value as number[]
  if (others.length > 0 || (min as number) > (max as number))
    rejectField(path, value, 'two numbers of words, the smaller one first')
}, 1)
const keep = byField({ tokens: fields({ tokens: integerAtLeast(1) }), usage: fields({ usage: share() }) })

const summaryTasks: Readonly<Record<string, Check>> = {
  progressive: fields({ summarise: oneOf('progressive'), words: wordRanges, keep, facts: trueOrFalse }),
  hour: fields({
    summarise: oneOf('hour'),
    batch: integerAtLeast(1),
    keep: integerAtLeast(1),
    share: share(),
    facts: optional(trueOrFalse),
  }),
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
  learn: fields({ learn: oneOf('knowledge') }),
})

const bandShare: Check = (value, path) =>
  isObject(value) ? fields({ withCode: share(true), without: share(true) })(value, path) : share()(value, path)

const maxShare: Check = (value, path) =>
  isObject(value)
    ? fields({ budget: integerAtLeast(1), upTo: share(true), beyond: share(true) })(value, path)
    : share()(value, path)

const band = fields<Band>({
  name: nonEmptyText,
  claim,
  renderings: listOf(renderStep, 1),
  priority: finiteNumber,
  renderAs: oneOf('turns', 'block'),
  heading: optional(nonEmptyText),
  label: optional(nonEmptyText),
  share: optional(bandShare),
  maxShare: optional(maxShare),
  maxTokens: optional(integerAtLeast(1)),
  fillTo: optional(share()),
  maxMisses: optional(integerAtLeast(0)),
  volatile: optional(trueOrFalse),
})

const permission = oneOf('yes', 'ask', 'no')

const profile = fields<Profile>({
  name: nonEmptyText,
  durability: oneOf('ram', 'durable'),
  budget: integerAtLeast(1),
  budgetMode: optional(oneOf('auto', 'fixed')),
  uploads: optional(oneOf('pass', 'refuse')),
  tokenizer: oneOf(...tokenizerNames),
  framing: oneOf(...framings),
  scopes: listOf(oneOf('session', 'scope', 'person'), 1),
  upkeepAt: optional(share()),
  maxMessageTokens: optional(integerAtLeast(16)),
  secrets: oneOf('mask', 'hide', 'keep'),
  knowledgePolicy: fields<KnowledgePolicy>({ user: permission, assistant: permission, tool: permission }),
  bands: listOf(band, 1),
  upkeep: listOf(fields<UpkeepRule>({ when, do: task, blocking: optional(trueOrFalse) })),
  lifetime: fields<Lifetime>({
    idle: optional(integerAtLeast(1)),
    age: optional(integerAtLeast(1)),
    messages: optional(integerAtLeast(2)),
    bytes: optional(integerAtLeast(1)),
    sessions: optional(integerAtLeast(1)),
    sessionsPerScope: optional(integerAtLeast(1)),
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
      rejectField(`${path}.name`, band.name, 'different from the names of the other bands')
    checkBand(band, path)
  })
  if (bands.filter(({ claim }) => 'rest' in claim).length > 1)
    rejectField('profile.bands', names, 'a list with at most one band that claims the rest')
  return structuredClone(value as Profile)
}

/** Checks constraints between fields; headings and labels must not blur the boundary between two entries. */
function checkBand({ heading, label, claim, renderAs }: Band, path: string): void {
  if (heading !== undefined && !/^[^\s/].*$/.test(heading))
    rejectField(`${path}.heading`, heading, 'one line that begins with neither white space nor a slash')
  if (label !== undefined && !/^[^\s/].* $/.test(label))
    rejectField(
      `${path}.label`,
      label,
      'one line that begins with neither white space nor a slash and ends with a space',
    )
  if ('tail' in claim && claim.tail.low >= claim.tail.high)
    rejectField(`${path}.claim.tail.low`, claim.tail.low, `less than high, which is ${claim.tail.high}`)
  if (('kind' in claim || 'recalled' in claim) && renderAs === 'turns')
    rejectField(`${path}.renderAs`, renderAs, 'block: only messages can be rendered as turns')
}
