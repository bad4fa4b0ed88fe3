import type { Work } from '../../domain/work.ts'
import { stem } from '../../text/stem.ts'
import type { Value } from '../../text/values.ts'
import type { SourceClause, SourceIndex } from './sourceIndex.ts'
import { type Clause, contentTerms, isNegated, isRestricted } from './valueClauses.ts'

/** Contexts in which the source has each value or name of one kind. */
type Contexts = Map<string, Context[]>
type Context = Pick<SourceClause, 'text' | 'context' | 'wideContext'>

/** Kind of a value; only values of one kind can be confused. */
const groupOf = ({ kind, dimension, digits }: Value): string =>
  `${kind} ${digits === undefined ? (dimension ?? '') : 'digits'}`
/** Normal form of a value, without the year of a date and the prefix of a telephone number. */
const tokenOf = ({ keys, digits }: Value): string =>
  digits === undefined ? (keys[0] ?? '').replace(/^\d{4}-(?=\d\d-\d\d)/, '--') : digits.slice(-7)

function addContext(contexts: Contexts, token: string, context: Context): void {
  const known = contexts.get(token)
  if (known === undefined) contexts.set(token, [context])
  else known.push(context)
}

/** Numbers that were calculated stand beside other words than in the source. */
const comparison =
  /(?<![\p{L}])(?:total|sum|more|less|fewer|difference|than|altogether|together|insgesamt|zusammen|mehr|weniger|plus|moins|más|menos|mais|meer|minder)(?![\p{L}])/iu

/** Finds values and names that the source connects with other words than the summary does. */
export function* findMisplaced(clauses: readonly Clause[], source: SourceIndex): Work<readonly string[]> {
  const byGroup = new Map<string, Contexts>()
  for (const clause of source.clauses)
    for (const value of clause.values) {
      const contexts: Contexts = byGroup.get(groupOf(value)) ?? new Map()
      byGroup.set(groupOf(value), contexts)
      addContext(contexts, tokenOf(value), clause)
    }
  const byName = nameContexts(source)
  yield source.clauses.length
  const replaced = new Set((yield* findReplacements(source)).flatMap(({ old, current }) => [old, current]))
  const misplaced: string[] = []
  for (const [index, clause] of clauses.entries()) {
    const names = [...clause.names].filter((name) => byName.has(name))
    const words = new Set([...clause.terms, ...names])
    const present = new Set(clause.values.map(tokenOf))
    const wrong: Value[] = []
    for (const value of comparison.test(clause.text) ? [] : clause.values) {
      if (!replaced.has(tokenOf(value)) && isWrongValue(value, words, byGroup, present, source.possibleNames))
        wrong.push(value)
      yield source.clauses.length
    }
    const [name] = names
    const isOne = names.length === 1 && !endsNameList(clauses[index - 1], clause, byName)
    const terms = new Set([...clause.terms].filter((term) => !byName.has(term)))
    const isWrongName = isOne && name !== undefined && isWrongPerson(name, terms, byName)
    for (const value of wrong) misplaced.push(`${value.text} (${clause.text.trim()})`)
    if (isWrongName) misplaced.push(clause.text.trim())
    yield source.clauses.length
  }
  return misplaced
}

/** True if a clause continues a list of names, which share the statement. */
const endsNameList = (before: Clause | undefined, clause: Clause, names: Contexts): boolean =>
  before !== undefined &&
  before.sentence === clause.sentence &&
  [...before.names].some((name) => names.has(name)) &&
  [...before.terms].every((term) => names.has(term) || before.names.has(term))

const sharedWords = (words: ReadonlySet<string>, contexts: readonly Context[], except: string): readonly string[] =>
  [...words].filter((word) => word !== except && contexts.some(({ context }) => context.has(word)))

/** True if nothing connects a value with its clause, but something another value; or if that also has its person. */
function isWrongValue(
  value: Value,
  words: ReadonlySet<string>,
  byGroup: ReadonlyMap<string, Contexts>,
  present: ReadonlySet<string>,
  names: ReadonlySet<string>,
): boolean {
  const group = groupOf(value)
  const [contexts, token] = [byGroup.get(group), tokenOf(value)]
  const own = contexts?.get(token)
  if (contexts === undefined || own === undefined) return false
  const isConnected = [...words].some((word) => own.some(({ wideContext }) => wideContext.has(word)))
  const ownShared = sharedWords(words, own, token)
  const minShared = group === 'number ' ? 2 : 1
  let ownSentences: ReadonlySet<ReadonlySet<string>> | undefined
  const isSameSentence = ({ wideContext }: Context): boolean => {
    ownSentences ??= new Set(own.flatMap((context) => (comparison.test(context.text) ? [] : [context.wideContext])))
    return ownSentences.has(wideContext)
  }
  const fitsBetter = (other: Context): boolean => {
    const shared = sharedWords(words, [other], token)
    if (!isConnected) return shared.length >= minShared
    const hasName = shared.some((word) => names.has(word) && !ownShared.includes(word))
    if (ownShared.length === 0 && isSameSentence(other)) return shared.length >= 2 || hasName
    return hasName && ownShared.every((word) => shared.includes(word))
  }
  return [...contexts].some(([other, sets]) => !present.has(other) && sets.some(fitsBetter))
}

/** True if one clause says of another person all that the source says of this one, and more. */
function isWrongPerson(name: string, terms: ReadonlySet<string>, contexts: Contexts): boolean {
  const ownShared = sharedWords(terms, contexts.get(name) ?? [], name)
  const fitsBetter = (other: Context): boolean => {
    const shared = sharedWords(terms, [other], name)
    return shared.length >= 2 && shared.length > ownShared.length && ownShared.every((word) => shared.includes(word))
  }
  return [...contexts].some(([other, sets]) => other !== name && sets.some(fitsBetter))
}

const continuesSubject =
  /^\W{0,3}(?:and |but |also )?(?:he|she|they|his|her|their|er|sie|il|elle|él|ella|ele|ela|hij|zij)(?![\p{L}])/iu

/** Contexts of names: the clauses with the name, those that continue with a pronoun, and what its bearer says. */
function nameContexts({ clauses, possibleNames: names }: SourceIndex): Contexts {
  const contexts: Contexts = new Map()
  let subject: string | undefined
  let message = -1
  for (const clause of clauses) {
    if (clause.message !== message) subject = undefined
    message = clause.message
    const own = [...clause.names].filter((name) => names.has(name))
    const [first] = own
    if (first !== undefined) subject = first
    else if (subject !== undefined && continuesSubject.test(clause.text)) addContext(contexts, subject, clause)
    for (const name of own) addContext(contexts, name, clause)
    if (clause.speaker !== '') addContext(contexts, clause.speaker, clause)
  }
  return contexts
}

/** Words with which a speaker replaces an earlier statement. */
const strongChange =
  /(?<![\p{L}])(?:actually|instead|chang(?:e|ed|ing)|correction|mov(?:e|ed) (?:it|to|from|the)|(?:has|have|was|been|got|is) moved|postponed|rescheduled|no longer|not any ?more|scratch that|i meant|updated?|switch(?:ed|ing)?|on second thought|stattdessen|geändert|ändern?|verschoben|verschieben|nicht mehr|korrektur|finalement|plutôt|changé|modifier|repouss\p{L}{1,3}|mejor|en realidad|cambi\p{L}{1,4}|al final|afinal|mudei|mudou|na verdade|gewijzigd|verzet|verplaatst)(?![\p{L}])/iu
/** Words that may do so, if the statements have a word in common. */
const weakChange =
  /(?<![\p{L}])(?:make (?:it|that)|rather|new|now|wait|eigentlich|doch|lieber|jetzt|neue[rsnm]?|en fait|maintenant|nouve\p{L}{1,4}|nuev[oa]|ahora|nov[oa]|agora|toch|liever|nu|nieuwe?)(?![\p{L}])/iu
const past =
  /(?<![\p{L}])(?:originally|initially|previously|formerly|first|before|old|earlier|was|were|used to|instead of|rather than|not|from|replac\p{L}{1,4}|ursprünglich|zuerst|zunächst|vorher|statt|anstatt|alte[rn]?|von|nicht|d['’]abord|initialement|avant|au lieu de|ancien\p{L}{0,2}|antes|inicialmente|en lugar de|em vez de|eerst|oorspronkelijk|eerder|in plaats van)(?![\p{L}])/iu

/** An earlier value or name and the one that replaced it. */
type Replacement = {
  readonly old: string
  readonly current: string
  readonly text: string
  readonly message: number
  readonly group: string
}

/** Messages between a value and its replacement without a common word. */
const maxReplacementDistance = 10
/** Earlier values and names beyond this number are not compared with a new one: the work would grow with its square. */
const maxMentions = 500
/** A longer clause names what it replaces. */
const maxReplacementTerms = 4

/** Finds values and names that a speaker has replaced since, if the summary has the old one as the current one. */
export function* findStale(clauses: readonly Clause[], source: SourceIndex): Work<readonly string[]> {
  const replacements = yield* findReplacements(source)
  const byOld = new Map(replacements.map((replacement) => [replacement.old, replacement]))
  const latest = (token: string): string => {
    let current = token
    for (let steps = 0; steps < replacements.length; steps++) current = byOld.get(current)?.current ?? current
    return current
  }
  const present = new Set(clauses.flatMap(tokensOf))
  return replacements.flatMap(({ old, text }) => {
    if (!present.has(old)) return []
    const current = latest(old)
    return present.has(current) && !isReversed(old, current, clauses) ? [] : [text]
  })
}

const tokensOf = (clause: Clause): readonly string[] => [...clause.values.map(tokenOf), ...clause.names]

/** True if the summary calls the current value the former one: "on 14 March (originally 21 March)". */
function isReversed(old: string, current: string, clauses: readonly Clause[]): boolean {
  const isPast = (token: string): boolean => {
    const leads = clauses.flatMap((clause) => leadsOf(token, clause))
    return leads.length > 0 && leads.every((lead) => past.test(lead))
  }
  return isPast(current) && !isPast(old)
}

/** Returns the words right before a value or name. */
function leadsOf(token: string, { text, values, names }: Clause): readonly string[] {
  const found = values.filter((value) => tokenOf(value) === token).map((value) => value.text)
  const all = names.has(token) ? [...found, token] : found
  return all.map((name) => text.slice(0, Math.max(0, text.toLowerCase().indexOf(name.toLowerCase()))).slice(-16))
}

function* findReplacements({ clauses, names }: SourceIndex): Work<readonly Replacement[]> {
  const replacements: Replacement[] = []
  const seen = new Map<string, Mention>()
  const changes = findChanges(clauses)
  for (const clause of clauses) {
    const own = groupedTokens(clause, names)
    const strength = changes.get(clause.wideContext)
    if (strength !== undefined)
      for (const [token, group] of own) {
        // The first new value of a message replaces; others explain it.
        const isFirst = replacements.at(-1)?.message !== clause.message || replacements.at(-1)?.group !== group
        const old = isFirst && !seen.has(token) ? findReplaced(group, clause, seen, strength === 'strong') : undefined
        if (old !== undefined)
          replacements.push({ old, current: token, text: clause.text.trim(), message: clause.message, group })
      }
    for (const [token, group] of own) seen.set(token, { group, clause })
    for (const token of seen.keys()) {
      if (seen.size <= maxMentions) break
      seen.delete(token)
    }
    yield strength === undefined ? clause.text.length : seen.size
  }
  // A value that is stated again after its replacement is current.
  const lastMention = new Map(
    clauses
      .filter(({ isPerson }) => isPerson)
      .flatMap((clause) => tokensOf(clause).map((token) => [token, clause.message])),
  )
  return replacements.filter(({ old, current }) => (lastMention.get(old) ?? 0) <= (lastMention.get(current) ?? 0))
}

/** A value or name where the source had it last. */
type Mention = { readonly group: string; readonly clause: SourceClause }

/** Sentences of persons that change something, by their context. */
function findChanges(clauses: readonly SourceClause[]): ReadonlyMap<ReadonlySet<string>, 'strong' | 'weak'> {
  const changes = new Map<ReadonlySet<string>, 'strong' | 'weak'>()
  for (const { isPerson, text, wideContext } of clauses) {
    if (!isPerson) continue
    if (strongChange.test(text)) changes.set(wideContext, 'strong')
    else if (!changes.has(wideContext) && weakChange.test(text)) changes.set(wideContext, 'weak')
  }
  return changes
}

const groupedTokens = (
  clause: Clause,
  names: ReadonlySet<string>,
): readonly (readonly [token: string, group: string])[] => [
  ...clause.values.map((value) => [tokenOf(value), groupOf(value)] as const),
  ...[...clause.names].filter((name) => names.has(name)).map((name) => [name, 'name'] as const),
]

/** Finds the earlier value of a group with the most words in common; after a strong word, also one without. */
function findReplaced(
  group: string,
  { terms, wideContext, message }: SourceClause,
  seen: ReadonlyMap<string, Mention>,
  isStrong: boolean,
): string | undefined {
  // Many values of one sentence share its context.
  const counts = new Map<ReadonlySet<string>, number>()
  const countCommon = (other: ReadonlySet<string>): number => {
    const known = counts.get(other) ?? [...wideContext].filter((word) => other.has(word)).length
    counts.set(other, known)
    return known
  }
  let best: readonly [token: string, shared: number] | undefined
  for (const [token, { group: other, clause }] of seen) {
    if (other !== group) continue
    const isShared = wideContext.has(token) && clause.wideContext.has(token)
    const shared = countCommon(clause.wideContext) - (isShared ? 1 : 0)
    const isNear =
      clause.message === message ||
      (group !== 'name' && terms.size <= maxReplacementTerms && message - clause.message <= maxReplacementDistance)
    if ((shared > 0 || (isStrong && isNear)) && shared >= (best?.[1] ?? 0)) best = [token, shared]
  }
  return best?.[0]
}

const idiom =
  /(?<![\p{L}])(?:no (?:problem|worries|doubt|idea|rush|thanks|hurry)|not (?:sure|yet|only|bad)|(?:do not|don['’]t) (?:know|think|worry|mind)|why not|kein problem|pas de (?:souci|problème)|no hay problema|sem problema|geen probleem)(?![\p{L}])/iu

/** Finds clauses of a summary that state without a negation what a person has denied or forbidden. */
export function* findReversedStatements(clauses: readonly Clause[], source: SourceIndex): Work<readonly string[]> {
  const sentences = new Map<number, string>()
  for (const { sentence, text } of clauses) sentences.set(sentence, `${sentences.get(sentence) ?? ''} ${text}`)
  const affirmed = source.clauses.filter(({ text, isQuestion }) => !isQuestion && !isNegated(text))
  const faults: string[] = []
  for (const { text, terms: all, isPerson, isQuestion } of source.clauses) {
    yield text.length
    const terms = new Set([...all].filter((term) => !isNegated(term)))
    if (!isPerson || isQuestion || terms.size === 0 || !isNegated(text) || idiom.test(text)) continue
    const minShared = terms.size <= 2 ? terms.size : Math.ceil((2 * terms.size) / 3)
    // Naming a path or identifier of the clause states nothing about it.
    const prose = contentTerms(text.replace(/[^\s._/]{0,80}[._/]\S{1,200}/g, ' '))
    const states = (clause: Clause): boolean =>
      prose.some((term) => terms.has(term) && clause.terms.has(term)) &&
      [...terms].filter((term) => clause.terms.has(term)).length >= minShared
    const stating = clauses.filter(states)
    yield clauses.length
    // "Drop the table" does not negate "never drop the table".
    const withoutTerms = (sentence: string): string =>
      sentence.replace(/\p{L}{3,}/gu, (word) => (terms.has(stem(word.toLowerCase())) ? '' : word))
    const isDenied = ({ sentence: index }: Clause): boolean => {
      const sentence = sentences.get(index) ?? ''
      return isNegated(sentence) || isRestricted(withoutTerms(sentence))
    }
    if (stating.length === 0 || stating.some(isDenied)) continue
    if (!affirmed.some(states)) faults.push(text.trim())
  }
  return faults
}
