import type { Json } from '../domain/entry.ts'
import { createDepthError } from '../domain/error.ts'
import { maxJsonDepth } from '../domain/stringify.ts'
import { toSlices, type Work } from '../domain/work.ts'
import { minMemberCharacters, privateMembersOf } from '../text/secrets/fileValues.ts'
import type { SecretMatch } from '../text/secrets/rule.ts'
import type { OpenLists } from '../text/secrets/scan.ts'
import { blankOut, findSecrets, findSecretsInSteps } from '../text/secrets.ts'
import { FieldText } from './fieldText.ts'
import { addLabel, findLabel, maxLabelCharacters, type SecretLabels } from './secretLabels.ts'
import { addOccurrences, mergeRanges, type SecretRange, splitByParts } from './secretRanges.ts'

/** Work between two pauses, in characters: about 2 ms for hostile text. */
const workPerSlice = 12_000
/** Characters of texts searched before the first pause between two texts: shorter messages are appended in one turn. */
const charactersBeforePause = 65_536
/** Fixed costs of a visit, a search, a range, a search with a label and a new field name, in characters. */
const visitWork = 10
const searchWork = 40
const rangeWork = 4
const labelWork = 150
const nameWork = 1_000
/** Longer texts are searched in windows. A window repeats the end of the one before, so that no PEM block is cut. */
const windowCharacters = 80_000
const windowOverlap = 20_000
/** Shorter texts contain no secret of their own. */
const minTextCharacters = 5
/** Longer strings are texts, which field names around them do not turn into secrets. */
const maxLabelledCharacters = 1_000
const dataPrefixPattern = /^data:[\w/+.;=-]{0,200},/
const minEncodedCharacters = 1_000
/** Beginning of a part that does not continue a secret at the end of the part before. */
const plainWordPattern = /^[A-Za-z]?[a-z'’]*$/
/** Characters before the end of a part in which a secret may begin. */
const maxTailCharacters = 2_000

/** Secrets of one document that are also replaced where nothing marks them, and their minimum length. */
const maxRepeatable = 8
const minRepeatableCharacters = 6

/** Returns the placeholder of a secret. */
export type Replace = (secret: string) => string

/** The fields of a document, such as the cells of a table. Positions in all texts are those of the document. */
export type SecretFields = {
  /** The document without line breaks in its fields. */
  readonly singleLineText: string
  /** Fields whose values are searched on their own: those with line breaks or signs that the document escapes. */
  readonly escapedFields: readonly SecretRange[]
  /** Returns the value of a field, without escapes. */
  valueOf(field: SecretRange): Work<string>
  /** Returns the positions in the document of ordered ranges of a field's value. */
  positionsIn(field: SecretRange, ranges: readonly SecretRange[]): Work<readonly SecretRange[]>
  /** Returns the parts of a secret that lie in the fields to which it belongs. */
  confine(match: SecretMatch): readonly SecretMatch[]
}

/** Container that is being visited, with the labels that hold for its values. */
type Frame = {
  readonly container: readonly Json[] | { readonly [name: string]: Json }
  /** Field names; undefined for a list. */
  readonly names: readonly string[] | undefined
  readonly labels: SecretLabels
  position: number
}

/**
 * Finds the secrets of texts and JSON values in linear time. Scanning is a generator that yields where the caller may
 * let other work run. Afterwards `replaceText` and `replaceJson` apply the result to the same texts and values: equal
 * strings have equal secrets, so results are kept by string.
 */
export class SecretScan {
  private readonly ranges = new Map<string, readonly SecretRange[]>()
  /** Values that are secrets because of their labels, with the ranges, by labels and value. */
  private readonly labelledRanges = new Map<string, readonly [value: string, ranges: readonly SecretRange[]]>()
  /** Labels by field name; undefined for a name that marks no secrets. */
  private readonly labels = new Map<string, string | undefined>()
  private readonly labelsByForm = new Map<string, string | undefined>()
  /** Texts that are scanned next, possibly with pauses. */
  private readonly pendingTexts: string[] = []
  private readonly partLists: (readonly string[])[] = []
  private readonly fields = new FieldText()
  /** Secrets that are replaced wherever they occur, also without what marks them as secrets. */
  private repeatable: readonly string[] | undefined
  private work = 0
  /** Characters of the texts searched so far. */
  private characters = 0

  get hasSecrets(): boolean {
    return this.ranges.size > 0 || this.labelledRanges.size > 0
  }

  /** The first distinct secrets, at most `limit`. */
  secrets(limit: number): readonly string[] {
    const secrets = new Set<string>()
    for (const found of [this.ranges, this.labelledRanges.values()])
      for (const [value, ranges] of found)
        for (const { start, end } of ranges) {
          if (secrets.size === limit) return [...secrets]
          secrets.add(value.slice(start, end))
        }
    return [...secrets]
  }

  /** Scans a text. `partEnds` are the ends of its parts except the last one; a line break follows each of them. */
  *scanText(text: string, partEnds: readonly number[] = []): Generator<void, void> {
    this.add(text, yield* this.findInText(text))
    if (partEnds.length === 0) return
    const starts = [0, ...partEnds.map((end) => end + 1)]
    const parts = starts.map((start, index) => text.slice(start, partEnds[index]))
    yield* this.scanParts(parts)
    const found: SecretRange[] = []
    for (const [index, part] of parts.entries()) {
      const from = starts[index] ?? 0
      for (const { start, end } of this.ranges.get(part) ?? []) found.push({ start: from + start, end: from + end })
      this.work += rangeWork * (this.ranges.get(part)?.length ?? 0)
      if (this.work >= workPerSlice) yield* this.pause()
    }
    this.add(text, found)
  }

  /** Scans a document. Its secrets end with the fields in which they begin. */
  *scanDocument(text: string, fields: SecretFields): Generator<void, void> {
    const confine = (range: SecretRange): readonly SecretRange[] => fields.confine({ kind: 'key', ...range })
    const inFields: SecretRange[] = []
    for (const field of fields.escapedFields) {
      const ranges = mergeRanges(yield* this.findInText(yield* toSlices(fields.valueOf(field))))
      for (const range of yield* toSlices(fields.positionsIn(field, ranges))) inFields.push(...confine(range))
      if (this.work >= workPerSlice) yield* this.pause()
    }
    const rest = blankOut(fields.singleLineText, mergeRanges(inFields))
    const found = [...inFields, ...(yield* this.findInWindows(rest, fields))]
    if (found.length === 0) return
    this.add(text, found)
    const confined: SecretRange[] = []
    for (const range of this.rangesOf(text, [])) {
      confined.push(...confine(range))
      this.work += searchWork + range.end - range.start
      if (this.work >= workPerSlice) yield* this.pause()
    }
    this.ranges.set(text, mergeRanges(confined))
    // Their further occurrences are among the ranges, as far as the fields allow.
    this.repeatable = []
  }

  /** Finds the secrets of a text, in windows if it is long. */
  private *findInText(text: string): Generator<void, readonly SecretRange[]> {
    const found = text.length > windowCharacters ? yield* this.findInWindows(text) : this.find(text)
    this.characters += text.length
    if (this.characters > charactersBeforePause && this.work >= workPerSlice) yield* this.pause()
    return found
  }

  /**
   * Scans all strings, numbers and field names of a JSON value. A field name may mark the values below it as secrets.
   *
   * @throws MemoryError `bad-option` for more than 100 levels.
   */
  *scanJson(value: Json): Generator<void, void> {
    const stack: Frame[] = []
    this.visit(value, [], stack)
    for (let frame = stack.at(-1); frame !== undefined; frame = stack.at(-1)) {
      this.visitNext(frame, stack)
      if (this.fields.isFull) this.scanFields()
      yield* this.scanPending()
      if (this.work >= workPerSlice) yield* this.pause()
    }
    this.scanFields()
    yield* this.scanPending()
    for (let parts = this.partLists.pop(); parts !== undefined; parts = this.partLists.pop())
      yield* this.scanParts(parts)
  }

  private *scanPending(): Generator<void, void> {
    for (let text = this.pendingTexts.pop(); text !== undefined; text = this.pendingTexts.pop())
      yield* this.scanText(text)
  }

  /** Replaces the secrets of a scanned text. */
  replaceText(text: string, placeholderOf: Replace): string {
    return replaceRanges(text, this.rangesOf(text, []), placeholderOf)
  }

  /** Replaces the secrets of a scanned JSON value; what has none stays the same object. */
  *replaceJson(value: Json, placeholderOf: Replace, labels: SecretLabels = []): Generator<void, Json> {
    if (typeof value !== 'object' || value === null) return this.replaceScalar(value, placeholderOf, labels)
    if (Array.isArray(value)) return yield* this.replaceItems(value, placeholderOf, labels)
    let isChanged = false
    const entries: [string, Json][] = []
    for (const [name, inner] of Object.entries(value)) {
      const replacedName = this.replaceText(name, placeholderOf)
      const innerLabels = addLabel(labels, this.labels.get(name))
      const replaced = isContainer(inner)
        ? yield* this.replaceJson(inner, placeholderOf, innerLabels)
        : this.replaceScalar(inner, placeholderOf, innerLabels)
      isChanged ||= replacedName !== name || replaced !== inner
      entries.push([replacedName, replaced])
      if (this.work >= workPerSlice) yield* this.pause()
    }
    return isChanged ? Object.fromEntries(entries) : value
  }

  private *replaceItems(list: Json[], placeholderOf: Replace, labels: SecretLabels): Generator<void, Json> {
    let isChanged = false
    const items: Json[] = []
    for (const item of list) {
      const replaced = isContainer(item)
        ? yield* this.replaceJson(item, placeholderOf, labels)
        : this.replaceScalar(item, placeholderOf, labels)
      isChanged ||= replaced !== item
      items.push(replaced)
      if (this.work >= workPerSlice) yield* this.pause()
    }
    return isChanged ? items : list
  }

  private replaceScalar(value: Json, placeholderOf: Replace, labels: SecretLabels): Json {
    this.work += labelWork
    if (typeof value === 'string') return replaceRanges(value, this.rangesOf(value, labels), placeholderOf)
    return typeof value === 'number' ? this.replaceNumber(value, placeholderOf, labels) : value
  }

  /** A number is replaced as a whole. */
  private replaceNumber(value: number, placeholderOf: Replace, labels: SecretLabels): Json {
    const [range] = this.rangesOf(`${value}`, labels)
    return range === undefined ? value : placeholderOf(`${value}`.slice(range.start, range.end))
  }

  /** Visits the next value of a container, or leaves the container. */
  private visitNext(frame: Frame, stack: Frame[]): void {
    const { container, names, labels } = frame
    const position = frame.position++
    if (position === (names ?? (container as readonly Json[])).length) {
      this.fields.write(names === undefined ? '],' : '},')
      stack.pop()
      return
    }
    const name = names?.[position]
    if (name === undefined) this.visit((container as readonly Json[])[position] as Json, labels, stack)
    else {
      const label = this.visitName(name)
      this.visit((container as Record<string, Json>)[name] as Json, addLabel(labels, label), stack)
    }
  }

  /** Scans a string or number, or puts a container on the stack. */
  private visit(value: Json, labels: SecretLabels, stack: Frame[]): void {
    this.work += visitWork
    if (typeof value === 'string') this.scanString(value, labels)
    else if (typeof value === 'number') this.scanNumber(value, labels)
    else if (isContainer(value)) {
      if (stack.length === maxJsonDepth) throw createDepthError()
      const names = Array.isArray(value) ? undefined : Object.keys(value)
      this.fields.write(names === undefined ? '[' : '{')
      if (Array.isArray(value)) this.collectParts(value)
      else this.addKeyMembers(value)
      stack.push({ container: value, names, labels, position: 0 })
    }
  }

  /** Returns the label that a field name is for the values below it. */
  private visitName(name: string): string | undefined {
    this.fields.writeName(name.length > maxLabelledCharacters ? '' : name)
    if (!this.labels.has(name)) {
      this.labels.set(name, this.labelOf(name))
      if (name.length >= minTextCharacters) this.pendingTexts.push(name)
    }
    return this.labels.get(name)
  }

  /** Names that differ in their numbers only are the same label. */
  private labelOf(name: string): string | undefined {
    const form = name.slice(-maxLabelCharacters).replace(/\d+/g, '0')
    if (!this.labelsByForm.has(form)) {
      this.work += nameWork
      this.labelsByForm.set(form, findLabel(form))
    }
    return this.labelsByForm.get(form)
  }

  private scanString(value: string, labels: SecretLabels): void {
    if (value.length > maxLabelledCharacters) {
      this.work += value.length / 10
      if (!isEncodedData(value)) this.pendingTexts.push(value)
      return
    }
    this.fields.writeValue(value, '"', '",')
    if (value.length >= minTextCharacters) this.add(value, this.find(value))
    this.scanLabelled(value, labels)
  }

  private scanNumber(value: number, labels: SecretLabels): void {
    // Numbers of one or two digits are no secrets, and the most frequent ones.
    if (Number.isInteger(value) && value > -10 && value < 100) return
    const text = `${value}`
    this.fields.writeValue(text, '', ',')
    this.scanLabelled(text, labels)
  }

  /** Searches a value after each of its labels, which may be all that marks it as a secret: `{ "password": "…" }`. */
  private scanLabelled(value: string, labels: SecretLabels): void {
    const found = labels.flatMap((label) => {
      this.work += labelWork
      return this.find(label + value).flatMap(({ start, end }) =>
        start < label.length ? [] : [{ start: start - label.length, end: end - label.length }],
      )
    })
    if (found.length > 0) this.labelledRanges.set(labelledName(value, labels), [value, mergeRanges(found)])
  }

  /** Adds the private members of a JSON Web Key, which may be too far from its type for a search in the fields. */
  private addKeyMembers(object: { readonly [name: string]: Json }): void {
    for (const name of privateMembersOf(object.kty)) {
      const member = object[name]
      if (typeof member === 'string' && member.length >= minMemberCharacters)
        this.add(member, [{ start: 0, end: member.length }])
    }
  }

  /** Remembers the text parts of a message's content, such as `[{ "type": "text", "text": "…" }]`. */
  private collectParts(list: readonly Json[]): void {
    const texts = list.flatMap((item) =>
      typeof item === 'object' && item !== null && 'text' in item && typeof item.text === 'string' ? [item.text] : [],
    )
    if (texts.length > 1) this.partLists.push(texts)
  }

  /** Finds secrets that begin in one part and end in another, and values whose name is in the part before. */
  private *scanParts(parts: readonly string[]): Generator<void, void> {
    const found = new Map<string, SecretRange[]>()
    for (const joiner of ['', ' ']) {
      const joined = parts.join(joiner)
      const ranges = yield* this.findInText(joined)
      for (const pieces of splitByParts(parts, joiner.length, ranges)) {
        // Context from the part before counts only if a space separates them.
        if (pieces.length === 1 && joiner === '') continue
        const isComplete = joiner === '' && this.endsWithSecret(pieces[0]?.part ?? '')
        this.work += rangeWork * pieces.length
        if (this.work >= workPerSlice) yield* this.pause()
        for (const [index, { part, ...range }] of pieces.entries()) {
          if (index > 0 && isComplete && plainWordPattern.test(part.slice(range.start, range.end))) continue
          const known = found.get(part)
          if (known === undefined) found.set(part, [range])
          else known.push(range)
        }
      }
    }
    for (const [part, ranges] of found) {
      this.add(part, ranges)
      this.work += rangeWork * ranges.length
      if (this.work >= workPerSlice) yield* this.pause()
    }
  }

  /** Searches the fields of objects as JSON text, in which a secret may follow its name in another field. */
  private scanFields(): void {
    for (const { text, ...range } of this.fields.locate(this.find(this.fields.text))) this.add(text, [range])
    this.fields.clear()
  }

  private rangesOf(text: string, labels: SecretLabels): readonly SecretRange[] {
    const plain = this.ranges.get(text) ?? []
    const labelled = labels.length === 0 ? undefined : this.labelledRanges.get(labelledName(text, labels))?.[1]
    const found = labelled === undefined ? plain : mergeRanges([...plain, ...labelled])
    this.repeatable ??= this.secrets(maxRepeatable).filter(isDistinctive)
    if (text.length < minRepeatableCharacters) return found
    return this.repeatable.reduce((ranges, secret) => addOccurrences(ranges, text, secret), found)
  }

  private add(text: string, found: readonly SecretRange[]): void {
    if (found.length > 0) this.ranges.set(text, mergeRanges([...(this.ranges.get(text) ?? []), ...found]))
  }

  private endsWithSecret(part: string): boolean {
    const tail = part.slice(-maxTailCharacters)
    return this.find(tail).at(-1)?.end === tail.length
  }

  private find(text: string): readonly SecretRange[] {
    this.work += text.length + searchWork
    return findSecrets(text)
  }

  private *findInWindows(text: string, fields?: SecretFields): Generator<void, readonly SecretRange[]> {
    const found: SecretRange[] = []
    const lists: OpenLists = new Map()
    const stepCharacters = windowCharacters - windowOverlap
    for (let from = 0; from === 0 || from + windowOverlap < text.length; from += stepCharacters) {
      const part = text.slice(from, from + windowCharacters)
      const search = findSecretsInSteps(part, lists, fields && confineWithin(fields, from, part.length))
      let step = search.next()
      for (; step.done !== true; step = search.next()) yield* this.pause()
      for (const { start, end } of step.value) found.push({ start: from + start, end: from + end })
      for (const [name, list] of lists) {
        list.at = list.resumeAt - stepCharacters
        // A row that began before the next window cannot be read there.
        if (list.at < 0) lists.delete(name)
      }
      yield* this.pause()
    }
    return mergeRanges(found)
  }

  private *pause(): Generator<void, void> {
    this.work = 0
    yield
  }
}

/** Confines secrets of a part of a document to that part and to its fields. */
const confineWithin =
  (fields: SecretFields, from: number, length: number): SecretFields['confine'] =>
  ({ kind, start, end }) =>
    fields.confine({ kind, start: from + start, end: from + end }).flatMap((match) => {
      const clipped = { kind, start: Math.max(0, match.start - from), end: Math.min(length, match.end - from) }
      return clipped.start < clipped.end ? [clipped] : []
    })

/**
 * True for encoded data, such as an image: no detector recognises a secret in it, and scanning megabytes takes long.
 * Looks for another character, because a pattern that repeats to the end of megabytes overflows the stack.
 */
function isEncodedData(value: string): boolean {
  const data = value.slice(dataPrefixPattern.exec(value)?.[0].length ?? 0)
  return data.length >= minEncodedCharacters && !/[^\w+/=-]/.test(data)
}

const isContainer = (value: Json): value is Json[] | { [name: string]: Json } =>
  typeof value === 'object' && value !== null

/** True for a secret that is unlikely to occur as anything else; a mask contains none. */
const isDistinctive = (secret: string): boolean =>
  secret.length >= minRepeatableCharacters &&
  /[a-z]/i.test(secret) &&
  /[^a-z]/i.test(secret) &&
  !/^secret:/.test(secret)

/** Labels end with `: `, so the name is unique. */
const labelledName = (value: string, labels: SecretLabels): string => `${labels.join('\0')}\0${value}`

function replaceRanges(text: string, ranges: readonly SecretRange[], placeholderOf: Replace): string {
  let [result, reached] = ['', 0]
  for (const { start, end } of ranges) {
    result += text.slice(reached, start) + placeholderOf(text.slice(start, end))
    reached = end
  }
  return result + text.slice(reached)
}
