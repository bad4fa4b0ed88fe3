import { formatDerived } from '../../../src/context/entryText.ts'
import { type Fact, openMemory, type Profile, parseKey, profiles, ramStore, tokenizerFor } from '../../../src/index.ts'
import { type FixtureMessage, splitTurns } from './transcript.ts'

/** A description and patterns that must all occur together. Alternatives of wording are inside a pattern. */
export type Item = readonly [description: string, ...patterns: RegExp[]]

/** Hand-written lists for one conversation. */
export type Expectations = {
  /** Values that the current facts must hold. All patterns of an item must occur in one fact. */
  readonly facts: readonly Item[]
  /** Content that facts and summary must hold together. All patterns must occur in one fact or two sentences in a row. */
  readonly memory: readonly Item[]
  /**
   * Outdated values with their replacement. A fact may hold the value only with the replacement or with a word that
   * marks it as past; in the summary, the replacement may also be in the next sentence.
   */
  readonly stale: readonly (readonly [description: string, value: RegExp, replacement: RegExp])[]
  /** Text that may occur neither in facts nor in the summary. */
  readonly never: readonly (readonly [description: string, pattern: RegExp])[]
  /** Statements that a summary may report, but that are no facts about the user. */
  readonly notFacts: readonly (readonly [description: string, pattern: RegExp])[]
  /** Facts and summary written by hand, which prove that the lists can be satisfied in a fifth of the tokens. */
  readonly reference: { readonly facts: readonly string[]; readonly summary: readonly string[] }
}

/** Derived text of a session as it is stored. */
export type DerivedText = {
  readonly facts: readonly string[]
  /** Bare names without an attribute. They state nothing, so they neither hold an item nor show an old value. */
  readonly mentions: readonly string[]
  /** Values of all facts and mentions without field and key. */
  readonly values: readonly string[]
  readonly summary: string
}

export type Score = {
  readonly missingFacts: readonly string[]
  readonly missingMemory: readonly string[]
  readonly faults: readonly string[]
  readonly staleValues: readonly string[]
}

const key = 'acme:ann'
/** Messages that stay in full at the end. */
const tailMessages = 4

/** Memory of a conversation after upkeep, with its size. */
export type MemoryOutcome = DerivedText & {
  /** Tokens of the conversation. */
  readonly tokens: number
  /** Tokens of facts and summary by tokens of the conversation. */
  readonly share: number
  /** Number of messages that the summary does not cover. */
  readonly uncovered: number
  /** Versions of the summary, which is the number of compactions. */
  readonly versions: number
}

/** Counts the tokens of a text exactly. */
export const countText = async (text: string): Promise<number> => (await tokenizerFor('gpt-4o')).count(text)

const countConversation = (messages: readonly FixtureMessage[]): Promise<number> =>
  countText(
    messages
      .flatMap(({ content, tool_calls: calls = [] }) => [
        content,
        ...calls.map((call) => ('function' in call ? call.function.arguments : '')),
      ])
      .join('\n'),
  )

/** Share of the conversation's tokens that facts and summary may take together. */
const maxShare = 0.2
const firstSummaryShare = 0.11
/** The number of words of a summary is only close to its number of tokens. */
const spareShare = 0.005

/** Stores a conversation with the built-in rules and reads its facts and summary, which take a fifth of its tokens. */
export async function runUpkeep(messages: readonly FixtureMessage[]): Promise<MemoryOutcome> {
  let summaryShare = firstSummaryShare
  let outcome = await runWith(messages, summaryShare)
  // Facts are as long as they are; the summary gets the rest.
  for (let round = 0; round < 3 && (outcome.share > maxShare || round === 0); round++) {
    summaryShare += maxShare - spareShare - outcome.share
    outcome = await runWith(messages, summaryShare)
  }
  return outcome
}

/** Stores a conversation turn by turn; the last summary takes about `summaryShare` of its tokens. */
async function runWith(messages: readonly FixtureMessage[], summaryShare: number): Promise<MemoryOutcome> {
  const tokens = await countConversation(messages)
  const tailTokens = await countConversation(messages.slice(-tailMessages))
  const words = messages.reduce((sum, { content }) => sum + content.split(/\s+/).length, 0)
  const profile = scaleProfile(tokens, summaryShare * words)
  const store = ramStore()
  let now = 0
  const clock = () => now
  await using memory = await openMemory({ profile, store, clock })
  for (const turn of splitTurns(messages)) {
    now = turn.at(-1)?.at ?? now
    await memory.append(key, turn)
    await memory.upkeep.whenIdle()
  }
  // A second memory with a lower limit summarises the rest, as a longer conversation would.
  await using closing = await openMemory({ profile: compactAll(profile, tailTokens), store, clock })
  closing.upkeep.notify(parseKey(key), 'tick')
  await closing.upkeep.whenIdle()
  const facts = await closing.upkeep.facts(key)
  const summaries = await closing.upkeep.summaries(key)
  const summary = summaries.map(({ text }) => text).join('\n')
  const lines = facts.filter((fact) => !isMention(fact)).map((fact) => formatDerived(fact, (text) => text))
  const shown = await countText(`${lines.join('\n')}\n${summary}`)
  return {
    facts: facts.filter((fact) => !isMention(fact)).map((fact) => `${toWords(fact.field)} ${formatFact(fact)}`),
    mentions: facts.filter(isMention).map(formatFact),
    values: facts.map(formatValue),
    summary,
    tokens,
    share: shown / tokens,
    uncovered: messages.length - Math.max(0, ...summaries.map(({ covers }) => covers[1])),
    versions: Math.max(0, ...summaries.map(({ version }) => version)),
  }
}

/**
 * Scales `thread`, which is made for 16,000 tokens, to a conversation of three times its budget: each version of the
 * summary keeps its proportion to the last one, which has `words`.
 */
function scaleProfile(tokens: number, words: number): Profile {
  const budget = Math.ceil(tokens / 3)
  const upkeep = profiles.thread.upkeep.map((rule) => {
    if (!('summarise' in rule.do) || rule.do.summarise !== 'progressive') return rule
    const scale = words / Math.max(...rule.do.words.map(([, max]) => max))
    const [first, ...later] = rule.do.words.map(
      ([min, max]) => [Math.ceil(min * scale), Math.ceil(max * scale)] as const,
    )
    return first === undefined ? rule : { ...rule, do: { ...rule.do, words: [first, ...later] as const } }
  })
  return { ...profiles.thread, budget, upkeep }
}

const compactAll = (profile: Profile, keepTokens: number): Profile => ({
  ...profile,
  upkeep: profile.upkeep.map((rule) =>
    'summarise' in rule.do && rule.do.summarise === 'progressive'
      ? { ...rule, when: { tokens: keepTokens }, do: { ...rule.do, keep: { tokens: keepTokens } } }
      : rule,
  ),
})

const isMention = ({ field, key }: Fact): boolean => field === 'entities' && key === ''
const toWords = (name: string): string => name.replaceAll(/[_-]+/g, ' ').replaceAll(/([a-z])([A-Z])/g, '$1 $2')
const formatValue = ({ value }: Fact): string => (typeof value === 'string' ? value : JSON.stringify(value))
const formatFact = (fact: Fact): string => `${fact.key === '' ? '' : `${toWords(fact.key)}: `}${formatValue(fact)}`

/** Splits a summary at line ends and after sentences. */
export const splitSummary = (text: string): readonly string[] =>
  text
    .split(/\n|(?<=[.!?…])\s+(?=[\p{Lu}\p{N}"'“«¿¡(•–-])/u)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence !== '')

const month =
  'jan(uary|uar|vier)?|feb(ruary|ruar)?|f[ée]vrier|mar(ch|s)?|märz|marzo|apr(il)?|avril|abril|ma[iy]|mayo|june?|juni|juin|' +
  'junio|july?|juli|juillet|julio|aug(ust)?|août|agosto|sept?(ember|embre)?|o[ck]t(ober|obre)?|nov(ember|embre)?|' +
  'de[cz](ember|embre)?|enero|febrero|septiembre|octubre|noviembre|diciembre'
const weekday =
  '(mon|tues?|wed(nes)?|thur?s?|fri|satur|sun)(day)?|sat|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag|' +
  'lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|lunes|martes|miércoles|jueves|viernes|sábado|domingo'

/** Faults that no conversation may have, looked for in each value and each sentence. */
const generalFaults: readonly (readonly [description: string, pattern: RegExp])[] = [
  [
    'pleasantry',
    /\bthank(s| you)\b(?! to\b)|\byou'?re (very )?welcome\b|\bhappy to help\b|\bhave a (nice|great|good)\b/i,
  ],
  ['pleasantry', /\bgood question\b|\bgreat question\b|\bno worries\b|\bglad (to|I|that|it)\b|\bcheers\b/i],
  ['pleasantry', /\b(vielen )?dank\b|\bdanke\b|\bgern geschehen\b|\bschönen (tag|abend)\b/i],
  ['pleasantry', /\bmerci\b|\bde rien\b|\bbonne (journée|soirée)\b|\bavec plaisir\b|\bparfait\s*!/i],
  ['pleasantry', /\bgracias\b|\bde nada\b|\bbuen(os|as)? (días?|tardes|noches)\b|\bencantad[oa] de ayudar/i],
  ['code', /;\s*$|=>|===|\b(const|let|var) \w+ =|\breturn \w+;?$|^\s*[)}\]]|\bimport .+ from ['"]/],
]
const dateName = new RegExp(`^(${month}|${weekday})\\.?$`, 'i')
const maxFactCharacters = 240

/** Words that mark a value as past. */
const pastMarker = new RegExp(
  String.raw`\b(no longer|any ?more|at first|formerly|previously|used to|instead of|rather than|nicht mehr|statt|anstelle|` +
    String.raw`zuvor|au lieu|auparavant|n['’]est plus|ya no|en (vez|lugar) de|antes)\b`,
  'i',
)

const holds = (units: readonly string[], patterns: readonly RegExp[]): boolean =>
  units.some((unit) => patterns.every((pattern) => pattern.test(unit)))

/** Compares derived text with the lists of its conversation. */
export function scoreMemory(derived: DerivedText, expected: Expectations): Score {
  const sentences = splitSummary(derived.summary)
  const windows = sentences.map((sentence, index) => `${sentence} ${sentences[index + 1] ?? ''}`)
  const missingIn = (items: readonly Item[], units: readonly string[]) =>
    items.filter(([, ...patterns]) => !holds(units, patterns)).map(([description]) => description)
  return {
    missingFacts: missingIn(expected.facts, derived.facts),
    missingMemory: missingIn(expected.memory, [...derived.facts, ...windows]),
    faults: [...findGeneralFaults(derived, sentences), ...findListedFaults(derived, sentences, expected)],
    staleValues: expected.stale.flatMap(([description, value, replacement]) => {
      const isStale = (text: string, window = text) =>
        value.test(text) && !replacement.test(window) && !pastMarker.test(text)
      return [
        ...derived.facts.filter((fact) => isStale(fact)).map((fact) => `${description} in fact: ${fact}`),
        ...sentences
          .filter((sentence, index) => isStale(sentence, windows[index]))
          .map((sentence) => `${description} in summary: ${sentence}`),
      ]
    }),
  }
}

function findGeneralFaults({ facts, values }: DerivedText, sentences: readonly string[]): readonly string[] {
  const repeated = sentences.filter((sentence, index) => sentences.indexOf(sentence) < index)
  return [
    ...generalFaults.flatMap(([description, pattern]) => [
      ...values.filter((value) => pattern.test(value)).map((value) => `${description} in fact: ${value}`),
      ...sentences.filter((one) => pattern.test(one)).map((sentence) => `${description} in summary: ${sentence}`),
    ]),
    ...values.filter((value) => dateName.test(value.trim())).map((value) => `name of a date as fact: ${value}`),
    ...facts.filter(({ length }) => length > maxFactCharacters).map((fact) => `rambling fact: ${fact}`),
    ...repeated.map((sentence) => `repeated in summary: ${sentence}`),
  ]
}

function findListedFaults(
  { facts, mentions }: DerivedText,
  sentences: readonly string[],
  { never, notFacts }: Expectations,
): readonly string[] {
  return [
    ...[...never, ...notFacts].flatMap(([description, pattern]) =>
      facts.filter((fact) => pattern.test(fact)).map((fact) => `${description} in fact: ${fact}`),
    ),
    ...never.flatMap(([description, pattern]) => [
      ...mentions.filter((name) => pattern.test(name)).map((name) => `${description} as name: ${name}`),
      ...sentences.filter((one) => pattern.test(one)).map((sentence) => `${description} in summary: ${sentence}`),
    ]),
  ]
}
