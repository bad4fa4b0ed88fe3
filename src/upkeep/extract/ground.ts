import type { Json } from '../../domain/entry.ts'
import { isObject } from '../../domain/error.ts'
import { runSync, type Work } from '../../domain/work.ts'
import { findFacts } from '../../text/facts.ts'
import type { Sentence } from '../../text/sentences.ts'
import { extractTerms, splitWords } from '../../text/words.ts'
import { statedClauses } from './clauses.ts'
import { extractFactsInSteps } from './extract.ts'
import {
  defaultImportance,
  type FactCandidate,
  type FactField,
  type FactMessage,
  factFields,
  isKeyedField,
} from './fields.ts'
import type { LanguageRules } from './languages/language.ts'
import { english, isMarker, likelyLanguages } from './languages/languages.ts'
import { userLines, userSentences } from './ownText.ts'
import { foldText, keyFromText, maxValueChars } from './phrases.ts'
import { findTopic, topicKey } from './preferences.ts'
import { constraintKeyFor, constraintsKey } from './statements.ts'

/** Terms of a value must be within this many sentences. */
const maxSentenceDistance = 3

/**
 * Keeps the facts of a model's answer that a user has stated: all terms, numbers, URLs and identifiers of a value must
 * be close together in one user message, in the user's own words, asserted and not negated. All others are rejected and
 * counted.
 *
 * @example
 * groundFacts({ user_preferences: { theme: 'dark', font: 'Arial' } }, [message]) // 'I prefer dark mode.': theme kept, font rejected
 */
export const groundFacts = (answer: unknown, messages: readonly FactMessage[]): GroundedFacts =>
  runSync(groundFactsInSteps(answer, messages))

type GroundedFacts = { readonly facts: readonly FactCandidate[]; readonly rejected: number }

/** `groundFacts` as interruptible work. */
export function* groundFactsInSteps(answer: unknown, messages: readonly FactMessage[]): Work<GroundedFacts> {
  let language = english
  const userMessages: MessageParts[] = []
  for (const message of messages) {
    if (message.role !== 'user') continue
    const parts = yield* splitMessage(message, language)
    language = parts.language
    userMessages.push(parts)
  }
  const latestFirst = [...userMessages].reverse()
  const claims = parseClaims(answer)
  const facts: FactCandidate[] = []
  const ruleFacts: RuleFacts = new Map()
  for (const claim of claims) {
    // Of repeated statements, keyed fields use the last one and lists the first one.
    const fact = yield* groundClaim(claim, isKeyedField(claim.field) ? latestFirst : userMessages, ruleFacts)
    if (fact !== undefined) facts.push(fact)
  }
  return { facts, rejected: claims.length - facts.length }
}

/** A part of a sentence between commas or similar boundaries. */
type Part = {
  readonly text: string
  readonly start: number
  readonly end: number
  readonly sentence: number
  readonly isStated: boolean
  readonly terms: ReadonlySet<string>
  readonly urls: readonly string[]
}
type MessageParts = {
  readonly message: FactMessage
  readonly language: LanguageRules
  readonly parts: readonly Part[]
  readonly terms: ReadonlySet<string>
}

/** Facts that the built-in rules find in the messages for which they were needed. */
type RuleFacts = Map<FactMessage, readonly FactCandidate[]>

/** Work of comparing a claim with a part of a sentence, in characters. */
const partChars = 8

function* splitMessage(message: FactMessage, expected: LanguageRules): Work<MessageParts> {
  const sentences = yield* userSentences(yield* userLines(message.content))
  const [language = expected] = likelyLanguages(foldText(sentences.map(({ text }) => text).join(' ')), expected)
  const parts: Part[] = []
  const terms = new Set<string>()
  for (const [index, sentence] of sentences.entries()) {
    for (const part of splitSentence(sentence, index, message.content, language)) {
      parts.push(part)
      for (const term of part.terms) terms.add(term)
    }
    yield sentence.text.length
  }
  return { message, language, parts, terms }
}

const boundary =
  /[,;:](?=\s)|[–—()]|\s(?:but|and i|because|although|though|aber|weil|mais|parce que|pero|porque|mas|maar|omdat)\s|$/gi

function splitSentence(sentence: Sentence, index: number, content: string, language: LanguageRules): readonly Part[] {
  const clauses = statedClauses(sentence, content, language)
  const parts: Part[] = []
  let from = 0
  for (const { 0: separator, index: at } of sentence.text.matchAll(boundary)) {
    const text = sentence.text.slice(from, at)
    const [start, end] = [sentence.start + from, sentence.start + at]
    from = at + separator.length
    if (!/[\p{L}\p{N}]/u.test(text)) continue
    const isStated = clauses.some((clause) => clause.start < end && start < clause.end)
    parts.push({
      text,
      start,
      end,
      sentence: index,
      isStated,
      terms: new Set(termsOf(joinDigitGroups(text), language)),
      urls: urlsInText(text),
    })
  }
  return parts
}

/** Inflected words of other languages are compared by their beginning. */
const stemLength = (word: string): number => Math.min(5, Math.max(3, word.length - 1))

/** Terms of a text: stems in English, otherwise the beginnings of words. */
const termsOf = (text: string, language: LanguageRules): readonly string[] =>
  language === english
    ? extractTerms(text)
    : splitWords(text).map((word) => (/^[\p{L}]+$/u.test(word) ? word.slice(0, stemLength(word)) : word))

/** Terms of a claim, without the most frequent words, which the user need not have said. */
const claimedTerms = (text: string, language: LanguageRules): readonly string[] =>
  language === english
    ? extractTerms(text)
    : termsOf(
        splitWords(text)
          .filter((word) => word.length > 1 && !isMarker(language, word))
          .join(' '),
        language,
      )

/** Makes `5,000` and `5000` equal. */
const joinDigitGroups = (text: string): string => text.replace(/(?<=\d)[,'’](?=\d{3}(?!\d))/g, '')
const urlsInText = (text: string): readonly string[] =>
  text.includes('://') ? findFacts(text).flatMap((fact) => (fact.text.includes('://') ? [fact.text] : [])) : []

/** Terms that must be found for a value. */
type GroundingTerms = {
  readonly terms: readonly string[]
  readonly urls: readonly string[]
  readonly isNegated: boolean
  readonly maxSentences: number
}

function* groundClaim(
  claim: Claim,
  messages: readonly MessageParts[],
  ruleFacts: RuleFacts,
): Work<FactCandidate | undefined> {
  const { field, value } = claim
  if (value === undefined || (isKeyedField(field) && claim.key === '')) return undefined
  const groundings = new Map<LanguageRules, GroundingTerms | undefined>()
  for (const messageParts of messages) {
    const { message, parts, terms, language } = messageParts
    if (!groundings.has(language)) groundings.set(language, groundingTerms(claim, language))
    const grounding = groundings.get(language)
    yield partChars
    if (grounding === undefined || !grounding.terms.every((term) => terms.has(term))) continue
    const span = yield* findShortestRun(parts, grounding, claim, language)
    if (span === undefined) continue
    const source = { message: message.id, span }
    const fact = { field, value, importance: defaultImportance[field], at: message.at, source }
    return isKeyedField(field)
      ? { ...fact, key: groundedKey(claim.key, terms, message.content.slice(...span)) }
      : { ...fact, ...(yield* findSlot(claim, messageParts, span, ruleFacts)) }
  }
  return undefined
}

type Slot = Pick<FactCandidate, 'key' | 'revises' | 'replaces'>

/** Share of the words of a statement that a claim must repeat to fill the same slot. */
const minSharedTerms = 0.5

/** Returns the slot that the built-in rules find for a claim's statement, so that either can supersede the other. */
function* findSlot(
  { field, value }: Claim,
  { message, language }: MessageParts,
  [from, to]: readonly [number, number],
  ruleFacts: RuleFacts,
): Work<Slot> {
  if (field !== 'important_facts' && field !== 'key_decisions') return { key: '' }
  const claimed = new Set(termsOf(String(value), language))
  const isSame = ({ value: stated, source, key }: FactCandidate): boolean => {
    const [start, end] = source.span ?? [0, 0]
    const terms = termsOf(String(stated), language)
    const shared = terms.filter((term) => claimed.has(term)).length
    return key !== '' && from < end && start < to && shared > 0 && shared >= minSharedTerms * terms.length
  }
  const facts = ruleFacts.get(message) ?? (yield* extractFactsInSteps([message]))
  ruleFacts.set(message, facts)
  const found = facts.find((fact) => statementFields.has(fact.field) && isSame(fact))
  return found === undefined
    ? { key: '' }
    : {
        key: found.key,
        ...(found.revises && { revises: true }),
        ...(found.replaces !== undefined && { replaces: found.replaces }),
      }
}

const statementFields: ReadonlySet<string> = new Set(['user_preferences', 'key_decisions', 'important_facts'])

/** Keys of document parts, which need not occur in the message. */
const structuralKey = /^(?:sections?|chapters?|title|outline|format|type|parts?|headings?|constraints\.\w+)$/

/** Keeps the model's key if the user said it or it is a known topic; otherwise derives one from the user's words. */
function groundedKey(key: string, terms: ReadonlySet<string>, passage: string): string {
  const words = extractTerms(key.replace(/[._-]/g, ' ')).filter((term) => !framingTerms.has(term))
  const isUserWording = words.length > 0 && words.length <= 4 && words.every((term) => terms.has(term))
  // `ui.theme` matches the topic `theme`.
  const topic = topicKey(key.replace(/^[a-z]{1,12}\./, ''))
  return isUserWording || topic !== undefined || structuralKey.test(key) ? key : keyFromText(passage)
}

/** Models write `the user` where the user writes `I`. */
const framingTerms: ReadonlySet<string> = new Set(extractTerms('user users'))

function groundingTerms({ key, value }: Claim, language: LanguageRules): GroundingTerms | undefined {
  const texts = [value ?? ''].flat().map(String)
  const terms = [...new Set(texts.flatMap((text) => claimedTerms(joinDigitGroups(text), language)))].filter(
    (term) => !framingTerms.has(term),
  )
  if (terms.length === 0) return undefined
  // A small number alone matches too easily: the thing it counts must occur as well.
  const isBareNumber = terms.every((term) => /^\d{1,3}$/.test(term))
  const counted = isBareNumber ? termsOf(key.replace(/[._]/g, ' '), language) : []
  if (isBareNumber && counted.length === 0) return undefined
  return {
    terms: [...terms, ...counted],
    urls: texts.flatMap(urlsInText),
    isNegated: isNegated(`${key.replace(/[._]/g, ' ')} ${texts.join(' ')}`, language),
    maxSentences: maxSentenceDistance + texts.length - 1,
  }
}

const aboutOthers = /\b(?:he|she|they)\b|\b(?:prefers|likes|loves|hates|wants|uses|enjoys|dislikes)\b/i

type ClaimPatterns = { readonly negation: RegExp; readonly wish: RegExp }

const claimPatterns = new Map<string, ClaimPatterns>()

/** Compiles the negations of a language, with those of English, and its words for a wish. */
function patternsOf({ code, negation, wish }: LanguageRules): ClaimPatterns {
  const known = claimPatterns.get(code)
  if (known !== undefined) return known
  const negations = code === english.code ? negation : `${negation}|${english.negation}`
  const patterns = { negation: new RegExp(`\\b(?:${negations})\\b`, 'i'), wish: new RegExp(`\\b(?:${wish})\\b`, 'i') }
  claimPatterns.set(code, patterns)
  return patterns
}

/** Negations of languages without rules. */
const foreignNegation =
  /(?<!\p{L})(?:не|ни|нет|немає|non|nie|nem|inte|ikke|ei|değil|yok|ليس|لا)(?!\p{L})|ない|ません|不|没|않|못/iu

const isNegated = (text: string, language: LanguageRules): boolean =>
  patternsOf(language).negation.test(foldText(text)) || (!hasRules(text, language) && foreignNegation.test(text))

/** Finds the shortest run of parts that has all terms, refers to the user and is not negated. */
function* findShortestRun(
  parts: readonly Part[],
  grounding: GroundingTerms,
  claim: Claim,
  language: LanguageRules,
): Work<readonly [number, number] | undefined> {
  const wanted = new Set(grounding.terms)
  /** Position of each term in the nearest part from here on. */
  const positions = new Map<string, number>()
  let best: readonly [number, number] | undefined
  for (let first = parts.length - 1; first >= 0; first--) {
    const head = parts[first] as Part
    yield partChars
    const own = [...head.terms].filter((term) => wanted.has(term))
    for (const term of own) positions.set(term, first)
    // A run must start with one of the terms; later starts find the others.
    if (own.length === 0 || positions.size < wanted.size) continue
    const last = Math.max(...positions.values())
    const tail = parts[last] as Part
    if (tail.sentence >= head.sentence + grounding.maxSentences) continue
    // Of runs of the same length, the first one is taken.
    if (best !== undefined && tail.end - head.start > best[1] - best[0]) continue
    const run = parts.slice(first, last + 1)
    yield tail.end - head.start
    const hasUrls = grounding.urls.every((url) => run.some((part) => part.urls.includes(url)))
    if (hasUrls && supportsClaim(run, grounding, claim, language)) best = [head.start, tail.end]
  }
  return best
}

function supportsClaim(
  run: readonly Part[],
  grounding: GroundingTerms,
  { field }: Claim,
  language: LanguageRules,
): boolean {
  const isStatement = field === 'user_preferences' || field === 'key_decisions' || field === 'important_facts'
  const text = run.map((part) => part.text).join(' ')
  if (isStatement && run.some((part) => !part.isStated)) return false
  if ((isStatement || field === 'custom_fields') && isNegated(text, language) !== grounding.isNegated) return false
  if (field !== 'user_preferences') return true
  if (!/\bI\b/.test(text) && aboutOthers.test(text)) return false
  return !hasRules(text, language) || patternsOf(language).wish.test(foldText(text))
}

/** False for a text in a language without rules, whose words for a wish are unknown. */
const hasRules = (text: string, language: LanguageRules): boolean =>
  language !== english || splitWords(text).some((word) => isMarker(english, word))

/** A fact claimed by a model; `value` is undefined if it has an unusable shape. */
type Claim = { readonly field: FactField; readonly key: string; readonly value: Json | undefined }

const maxClaims = 400
const maxListItems = 40

/**
 * Parses the claims in a model's answer. Accepts deviating shapes: a text for a list, a list for an object, an object
 * for a text, or one extra level of nesting.
 */
function parseClaims(answer: unknown): readonly Claim[] {
  if (!isObject(answer)) return []
  const wrapped = ownValue(answer, 'important_data')
  const data = isObject(wrapped) ? wrapped : answer
  return factFields
    .flatMap((field) =>
      isKeyedField(field) ? keyedClaims(field, ownValue(data, field)) : listClaims(field, ownValue(data, field)),
    )
    .slice(0, maxClaims)
}

const ownValue = (object: Record<string, unknown>, name: string): unknown =>
  Object.hasOwn(object, name) ? object[name] : undefined

function listClaims(field: FactField, input: unknown): readonly Claim[] {
  if (input === undefined || input === null) return []
  const items = Array.isArray(input) ? input : isObject(input) ? Object.values(input).flat() : [input]
  return items.map((item) => ({ field, key: '', value: textOfItem(item) }))
}

/** Properties in which models put the name of an object. */
const nameProperties = ['name', 'value', 'text', 'fact', 'decision', 'url', 'title', 'description', 'content']

function textOfItem(item: unknown): string | undefined {
  if (!isObject(item)) return toScalarText(item)
  const property = nameProperties.find((name) => typeof ownValue(item, name) === 'string')
  return property === undefined ? undefined : toScalarText(ownValue(item, property))
}

const toScalarText = (value: unknown): string | undefined => {
  const text =
    typeof value === 'string' ? value.trim() : typeof value === 'number' && Number.isFinite(value) ? String(value) : ''
  return text === '' || text.length > maxValueChars ? undefined : text
}

function keyedClaims(field: FactField, input: unknown): readonly Claim[] {
  if (input === undefined || input === null) return []
  if (isObject(input))
    return Object.entries(input).flatMap(([key, value]) => entryClaims(field, normalizeKey(key), value, 1))
  if (field === 'document_structure' && Array.isArray(input))
    return [{ field, key: 'sections', value: listOfTexts(input) }]
  return [input].flat().map((item) => claimWithoutKey(field, textOfItem(item)))
}

/** Creates a claim from a text without a key; the key is derived as the rules do. */
function claimWithoutKey(field: FactField, text: string | undefined): Claim {
  if (text === undefined) return { field, key: '', value: undefined }
  const topic =
    field === 'user_preferences' ? findTopic(text.replace(/^.*\b(?:prefers?|uses?|likes?) /i, ''), 'chosen') : undefined
  return topic === undefined ? { field, key: keyFromText(text), value: text } : { field, ...topic }
}

function entryClaims(field: FactField, key: string, value: unknown, levels: number): readonly Claim[] {
  if (isObject(value))
    return levels === 0
      ? [{ field, key, value: undefined }]
      : Object.entries(value).flatMap(([name, inner]) => entryClaims(field, `${key}.${normalizeKey(name)}`, inner, 0))
  if (field === 'custom_fields' && key === constraintsKey)
    return [value].flat().map((item) => constraintClaim(textOfItem(item)))
  return [{ field, key, value: Array.isArray(value) ? listOfTexts(value) : toScalarText(value) }]
}

/** Constraints have one key each, like those found by the rules. */
const constraintClaim = (text: string | undefined): Claim => ({
  field: 'custom_fields',
  key: constraintKeyFor(text ?? '') ?? '',
  value: text,
})

function listOfTexts(items: readonly unknown[]): Json | undefined {
  const texts = items.map(textOfItem)
  return texts.length === 0 || texts.length > maxListItems || texts.some((text) => text === undefined)
    ? undefined
    : (texts as string[])
}

/**
 * Normalises keys: `programmingLanguage`, `Time zone` and `IDE` become `programming_language`, `timezone`, `editor`.
 */
function normalizeKey(name: string): string {
  const key = name
    .slice(0, 60)
    .replace(/(?<=[a-z])(?=[A-Z])/g, '_')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}.]+/gu, '_')
    .replace(/^_+|(?<!_)_+$/g, '')
  return /^constraints?$/.test(key) ? constraintsKey : (topicKey(key) ?? key)
}
