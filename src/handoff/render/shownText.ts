import { splitSentences } from '../../text/sentences.ts'

const flatten = (text: string): string => text.replace(/[\s\p{Cf}]+/gu, ' ').trim()
/** Marks of a cut at the end of a title or sentence. */
const cutMark = /(?:…|\.\.\.)$/

/** Text that is already part of a restored text. White space does not matter. */
export class ShownText {
  readonly #original: string
  #flattened: string | undefined

  constructor(...texts: readonly string[]) {
    this.#original = texts.join('\n')
  }

  /** Computed when needed: long texts mostly show what is searched as it is. */
  get #flat(): string {
    this.#flattened ??= flatten(this.#original)
    return this.#flattened
  }

  /** Checks whether a text, or the part of it before its cut, is shown. */
  has(text: string): boolean {
    const quoted = flatten(text).replace(cutMark, '')
    const isShownAsIs = !quoted.endsWith(' ') && this.#original.includes(quoted)
    return quoted !== '' && (isShownAsIs || this.#flat.includes(quoted))
  }
}

/** Label of a summary's line, and the rest of the line. */
const labelledLine = /^(?<label>[^:\n]{1,60}): (?<rest>.*)$/

/**
 * Removes the sentences of a summary that are shown elsewhere. The label of a speaker holds until the next one, so it
 * moves to the next line that stays.
 *
 * @example
 * omitShown('User: Fix it. Port 8080 is taken.\nUse 8081.', new ShownText('Fix it.'), ['User']) // 'User: Port 8080 is taken.\nUse 8081.'
 */
export function omitShown(summary: string, shown: ShownText, speakers: ReadonlySet<string>): string {
  const lines: string[] = []
  let pendingLabel = ''
  for (const line of summary.split('\n')) {
    const { label = '', rest = '' } = labelledLine.exec(line)?.groups ?? {}
    const isLabelled = speakers.has(label)
    if (isLabelled) pendingLabel = `${label}: `
    const text = isLabelled ? rest : line
    const sentences = splitSentences(text).map((sentence) => sentence.text)
    const kept = sentences.filter((sentence) => !shown.has(sentence))
    if (kept.length === 0) continue
    lines.push(pendingLabel + (kept.length === sentences.length ? text : kept.join(' ')))
    pendingLabel = ''
  }
  return lines.join('\n')
}
