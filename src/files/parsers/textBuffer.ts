import { unreadableFileError } from '../errors.ts'

/** Collects extracted text and throws as soon as it exceeds the limit. */
export class TextBuffer {
  private readonly maxCharacters: number
  private readonly parts: string[] = []
  private size = 0

  constructor(maxCharacters: number) {
    this.maxCharacters = maxCharacters
  }

  get length(): number {
    return this.size
  }

  get text(): string {
    return this.parts.join('')
  }

  write(text: string): void {
    this.size += text.length
    if (this.size > this.maxCharacters)
      throw unreadableFileError(
        `holds more than ${this.maxCharacters.toLocaleString('en')} characters of text. Split it into smaller files`,
      )
    this.parts.push(text)
  }
}
