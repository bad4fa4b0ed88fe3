import { unreadable } from '../unreadable.ts'

/** Text as it is being read: what would be more than may be kept ends it at once, however much were to come. */
export class Paper {
  readonly most: number
  private readonly parts: string[] = []
  private written = 0

  constructor(most: number) {
    this.most = most
  }

  /** How many characters there are so far. */
  get length(): number {
    return this.written
  }

  get text(): string {
    return this.parts.join('')
  }

  write(text: string): void {
    this.written += text.length
    if (this.written > this.most)
      throw unreadable(
        `holds more than ${this.most.toLocaleString('en')} characters of text. Split it into smaller ones`,
      )
    this.parts.push(text)
  }
}
