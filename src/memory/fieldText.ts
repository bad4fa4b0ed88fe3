import type { SecretRange } from './secretRanges.ts'

/** Length at which the text is to be searched. */
const maxCharacters = 10_000
/** Characters that are kept for the next search: a name and its value may be that far apart. */
const keptCharacters = 400

type WrittenString = { readonly text: string; readonly start: number; readonly isName: boolean }

/** JSON text of fields, in which the strings stand as they are, with their positions. */
export class FieldText {
  text = ''
  private strings: WrittenString[] = []

  get isFull(): boolean {
    return this.text.length >= maxCharacters
  }

  write(sign: string): void {
    this.text += sign
  }

  /** Writes a field name, which is no value of the name before it: `{ "password": { "value": … } }`. */
  writeName(name: string): void {
    this.add(name, '"', '":', true)
  }

  /** Writes a value between quotes or other signs. */
  writeValue(text: string, before: string, after: string): void {
    this.add(text, before, after, false)
  }

  private add(text: string, before: string, after: string, isName: boolean): void {
    this.strings.push({ text, start: this.text.length + before.length, isName })
    this.text += before + text + after
  }

  /** Returns the parts of values that ordered ranges of the text cover. */
  *locate(ranges: readonly SecretRange[]): Generator<SecretRange & { readonly text: string }> {
    let index = 0
    for (const range of ranges)
      for (; index < this.strings.length; index++) {
        const { text, start: offset, isName } = this.strings[index] as WrittenString
        if (offset >= range.end) break
        const [start, end] = [Math.max(0, range.start - offset), Math.min(text.length, range.end - offset)]
        if (start < end && !isName) yield { text, start, end }
        // The next range may begin in the same string.
        if (offset + text.length > range.end) break
      }
  }

  /** Drops everything but the end. */
  clear(): void {
    const cut = this.text.length - keptCharacters
    const kept = this.strings.filter(({ start }) => start > cut)
    const from = kept[0] === undefined ? this.text.length : Math.max(0, kept[0].start - 1)
    this.text = this.text.slice(from)
    this.strings = kept.map(({ start, ...string }) => ({ ...string, start: start - from }))
  }
}
